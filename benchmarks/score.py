"""Score, harness and distillation beside the bare forward pass of the same tokens, in CPU seconds.

    python benchmarks/score.py --quick
    python benchmarks/score.py --model models/smollm2 --text en.txt --tokens 1500

The bare pass is a loop of plain PyTorch, window by window, without padding: the model's body, its
head at every position, cross entropy. It runs the tokens that each verb needs: of `score` all
windows with what they repeat, of `harness` each context with each answer, of `distill` every
snippet as the teacher and the student read it, with the gradient. "packed" runs as many tokens in
full rows of 512: as fast as this model gets here. Both run in turn in one process. "tokens run" are
those that the model was given, padding included; "body" is the share of time inside the model's
layers; the rest is the head, the loss, reading the tokenizer and Python.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
import distill
import measure

import vocabshift as vs

ROW = 512
Work = Callable[[], object]


class Meter:
    """Tokens that a model runs, and CPU seconds inside its body."""

    def __init__(self, *models: Any) -> None:
        self.tokens, self.body, self._start = 0, 0.0, 0.0
        for model in models:
            body = model.get_submodule(model.base_model_prefix)
            body.register_forward_pre_hook(self._begin, with_kwargs=True)
            body.register_forward_hook(self._end)

    def _begin(self, _module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.tokens += (args[0] if args else options["input_ids"]).numel()
        self._start = time.process_time()

    def _end(self, *_: Any) -> None:
        self.body += time.process_time() - self._start

    def timed(self, work: Work) -> tuple[float, float, int]:
        """CPU seconds of one run, of them in the body, and tokens."""
        self.tokens, self.body = 0, 0.0
        began = time.process_time()
        work()
        return time.process_time() - began, self.body, self.tokens


def nats(model: Any, ids: Any, first: int) -> torch.Tensor:
    """The bare pass of one window: body, head, cross entropy of the ids from `first` on."""
    hidden = model.get_submodule(model.base_model_prefix)(ids, use_cache=False).last_hidden_state
    logits = model.get_output_embeddings()(hidden)[0]
    return torch.nn.functional.cross_entropy(
        logits[max(first - 1, 0) : -1], ids[0, max(first, 1) :], reduction="sum"
    )


def packed(model: Any, n_tokens: int) -> Work:
    """As many tokens in rows of 512."""
    ids = torch.arange(n_tokens) % model.config.vocab_size

    def run() -> None:
        with torch.inference_mode():
            for row in ids.split(ROW):
                nats(model, row[None], 0) if len(row) > 1 else None

    return run


def of_score(model: Any, tokenizer: Any, texts: list[str], context: int) -> dict[str, Work]:
    """Bits per byte of documents, the longer ones in windows."""
    from vocabshift.models.windows import windows_of
    from vocabshift.tokenizer.engine import Engine

    ids, offsets = Engine(tokenizer).encode_batch(texts)
    bos = model.config.get_text_config().bos_token_id
    windows = [
        window
        for number, (start, end) in enumerate(pairwise(offsets))
        for window in windows_of(number, ids[start:end], bos, context, context // 2)
    ]

    def bare() -> None:
        with torch.inference_mode():
            for window in windows:
                float(nats(model, torch.from_numpy(window.ids)[None], window.n_context))

    return {
        "bare": bare,
        "vocabshift": lambda: vs.score(model, tokenizer, texts, context=context),
        "packed": packed(model, sum(window.ids.size for window in windows)),
    }


def of_harness(model: Any, tokenizer: Any, texts: list[str]) -> dict[str, Work]:
    """Four answers to each context: how a document goes on, and how three others do."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    from vocabshift.evaluation.harness.border import BorderLM

    halves = [(text[: len(text) * 3 // 4].rsplit(" ", 1)[0], text) for text in texts]
    ends = [text[len(begin) :][:30] for begin, text in halves]
    pairs = [
        (begin, ends[(number + other) % len(ends)])
        for number, (begin, _) in enumerate(halves)
        for other in range(min(4, len(ends)))
    ]
    backend = tokenizer.to_hf()
    if backend.eos_token_id is None:
        backend.eos_token = backend.convert_ids_to_tokens(0)
    options = {"pretrained": model, "tokenizer": backend, "backend": "causal", "batch_size": 1}
    requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
    encoded = [(backend.encode(a), backend.encode(a + b)) for a, b in pairs]

    def bare() -> None:
        with torch.inference_mode():
            for given, whole in encoded:
                first = min(len(given), len(whole) - 1)
                float(nats(model, torch.tensor([whole]), first))

    ours, theirs = BorderLM(**options), HFLM(**options)
    return {
        "bare": bare,
        "vocabshift": lambda: ours.loglikelihood(requests, disable_tqdm=True),
        "lm-eval": lambda: theirs.loglikelihood(requests, disable_tqdm=True),
    }


def of_distill(folder: str, new: str, text: Path, tokens: int) -> tuple[dict[str, Work], list[Any]]:
    """Rows of new tokens learned from snippets, one epoch; and the models."""
    found = distill.prepared(folder, new, text, 1000, tokens)
    teacher, student, matrices, plan, snippets, ids, settings = found
    from vocabshift.surgery.lesson import Lesson
    from vocabshift.surgery.snippets import Around
    from vocabshift.surgery.student import frozen

    def ours() -> None:
        with frozen(teacher, student):
            options = {"matrices": matrices, "sources": plan.made, "ids": ids, "seed": 0}
            around = (Around(), Around())
            lesson = Lesson(
                teacher, student, snippets, around, options=settings, has_next=True, **options
            )
            lesson.run(None, None)

    def bare() -> None:
        body = student.get_submodule(student.base_model_prefix)
        teaching = teacher.get_submodule(teacher.base_model_prefix)
        with frozen(teacher, student):
            student.get_input_embeddings().weight.requires_grad_()
            student.get_output_embeddings().weight.requires_grad_()
            for snippet in snippets:
                old, own = (
                    torch.from_numpy(each.astype(np.int64))[None]
                    for each in (snippet.old, snippet.new)
                )
                with torch.no_grad():
                    wanted = teaching(old, use_cache=False).last_hidden_state[0, snippet.at_old]
                hidden = body(own, use_cache=False).last_hidden_state
                loss = (hidden[0, snippet.at_new] - wanted).square().sum()
                logits = student.get_output_embeddings()(hidden)[0, :-1]
                loss = loss + torch.nn.functional.cross_entropy(logits, own[0, 1:], reduction="sum")
                torch.autograd.backward(loss)
            student.zero_grad(set_to_none=True)

    return {"bare": bare, "vocabshift": ours}, [teacher, student]


def rows_of(name: str, works: dict[str, Work], meter: Meter, runs: int) -> list[str]:
    """Rows of the table for one verb."""
    found: dict[str, list[tuple[float, float, int]]] = {each: [] for each in works}
    for number in range(runs + 1):
        for each, work in works.items():
            measured = meter.timed(work)
            if number:  # the first round imports and probes
                found[each].append(measured)
            print(f"{name}, {each}: {measured[0]:.2f} s", file=sys.stderr, flush=True)
    lines = []
    for each, own in found.items():
        ratios = [one[0] / other[0] for one, other in zip(own, found["bare"], strict=True)]
        cpu, body, tokens = (statistics.median(column) for column in zip(*own, strict=True))
        lines.append(
            f"| {name} | {each} | {int(tokens):,} | {cpu:.2f} | {body / cpu:.0%} "
            f"| {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) |"
        )
    return lines


def texts_of(path: Path, tokenizer: Any, n_tokens: int) -> list[str]:
    """Lines of a file up to a number of tokens, then a long document of half of them."""
    texts: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            texts.append(line)
        if len(tokenizer.encode_batch(texts)[0]) >= n_tokens // 2:
            break
    return [*texts, " ".join(texts)]


def main(words: list[str] | None = None) -> str:
    """Print and return the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", help="folder of a model with its tokenizer")
    parser.add_argument("--text", type=Path, help="a file of text, a document a line")
    parser.add_argument("--tokens", type=int, default=1500, help="of text that is scored")
    parser.add_argument("--context", type=int, default=256, help="of the windows of `score`")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a small random model and text")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        new = f"{place}/new"
        if options.quick:
            options.model, new, options.text = distill.quick(Path(place))
        elif not (options.model and options.text):
            parser.error("give --model and --text, or --quick")
        else:
            corpus = vs.Corpus.from_files({"text": options.text})
            vs.BpeTrainer(vocab_size=4000).train(corpus).save_pretrained(new)
        from vocabshift.models.load import load_causal_model
        from vocabshift.tokenizer.formats.load import open_tokenizer

        model, tokenizer = load_causal_model(options.model), open_tokenizer(options.model)
        texts = texts_of(options.text, tokenizer, options.tokens)
        works, models = of_distill(options.model, new, options.text, options.tokens)
        torch.set_num_threads(options.threads)
        meter, other = Meter(model), Meter(*models)
        lines = [
            "| | | tokens run | CPU s | body | CPU, times bare |",
            "|---|---|---:|---:|---:|---:|",
            *rows_of(
                "score", of_score(model, tokenizer, texts, options.context), meter, options.runs
            ),
            *rows_of("harness", of_harness(model, tokenizer, texts[:-1]), meter, options.runs),
            *rows_of("distill", works, other, options.runs),
        ]
    table = "\n".join(lines)
    print(f"{table}\n\n{measure.machine()}")
    return table


if __name__ == "__main__":
    main()
