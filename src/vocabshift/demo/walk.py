"""The demo run through the whole pipeline: text in, a better tokenizer in a working model out.

Owns the order of the steps and their sizes. It uses the public API alone; `story` prints the
messages. All numbers are on held-out lines. The moved model is compared with a control: the old
model with the old tokenizer, trained on the same further bytes of text in the same phase.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.demo import story

if TYPE_CHECKING:
    import vocabshift as vs


# The demo's model: a Llama small enough to pre-train on a laptop in a minute.
#
# Owns its shape, its thread and how it is saved. The only file of the demo that touches
# transformers.


def make(
    tokenizer: vs.Tokenizer, end_token: str, *, hidden_size: int, n_layers: int, context: int
) -> Any:
    """Make a Llama with reproducible random weights, whose BOS and EOS are `end_token`.

    Input embeddings and head are two tensors, as in most models of 3B parameters and more.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    end = next(token.id for token in tokenizer.added_tokens if token.content == end_token)
    config = LlamaConfig(
        vocab_size=tokenizer.row_count,
        hidden_size=hidden_size,
        intermediate_size=8 * hidden_size // 3,
        num_hidden_layers=n_layers,
        num_attention_heads=hidden_size // 32,
        max_position_embeddings=context,
        tie_word_embeddings=False,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread inside the block.

    Matrices this small gain little from a second thread. On a busy machine the threads wait for
    each other, which took three times as long. One thread also keeps the figures independent of
    the number of cores.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def save(model: Any, tokenizer: vs.Tokenizer, folder: Path) -> None:
    """Write both as one folder that `AutoTokenizer` and `AutoModelForCausalLM` load."""
    from transformers.utils import logging

    bars: Any = logging  # untyped
    tokenizer.save_pretrained(folder)
    shows_progress = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # a file of four megabytes needs no bar
    try:
        model.save_pretrained(folder)
    finally:
        if shows_progress:
            bars.enable_progress_bar()


# The walk.


END_TOKEN = "<|end|>"

BASE, IST = "base tokenizer", "IST tokenizer"
BEFORE, CONTROL = "base model", "control"  # the control: base, trained on the further text
MOVED, ADAPTED = "IST, just moved", "IST, trained"  # the latter: on the same further text


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The amount of everything; the defaults take about two minutes on two cores."""

    base_vocab_size: int = 1024
    ist_vocab_size: int = 3072
    hidden_size: int = 128
    n_layers: int = 3
    unfamiliar_every: int = 4  # one document in so many of unknown languages, in pre-training
    pretraining_rounds: float = 8.0  # times the text for pre-training
    pretraining_rate: float = 1.5e-3
    further_rounds: float = 6.0  # times the whole training text
    further_rate: float = 6e-3
    sequence_length: int = 128  # tokens
    batch_size: int = 4  # sequences a step


def run_demo(
    out: str | Path, *, force: bool = False, json: bool = False, plan: Plan | None = None
) -> dict[str, Any]:
    """Run the whole demo, write everything to the folder `out`, and return the figures.

    FileExistsError if `out` exists; with `force` it is replaced, once the new one is complete.
    Messages go to stderr; with `json`, only progress. Takes about two minutes on two cores, and
    needs no network.
    """
    from vocabshift.workflows import outcome

    began = time.monotonic()
    tell = story.Story(quiet=json)
    with outcome("demo", out, force=force) as output:
        figures = _walk(output.folder, plan or Plan(), tell)
    tell.end(Path(out), seconds=time.monotonic() - began)
    return {"out": str(out), "seconds": round(time.monotonic() - began, 1), **figures}


def _walk(folder: Path, plan: Plan, tell: story.Story) -> dict[str, Any]:
    import vocabshift as vs

    train_files, held_out_files = story.write_split(folder / "corpus")
    train = vs.Corpus.from_files(train_files)
    held_out = _with_groups(vs.Corpus.from_files(held_out_files))
    tell.texts(len(train_files), _n_bytes(train))

    base = vs.BpeTrainer(
        vocab_size=plan.base_vocab_size, pre_tokenizer="o200k", special_tokens=(END_TOKEN,)
    ).train(train.select(story.familiar()))
    base = replace(base, config={**base.config, "bos_token": END_TOKEN, "eos_token": END_TOKEN})
    ist = vs.SuperwordTrainer(
        vocab_size=plan.ist_vocab_size, transition=0.9, pre_tokenizer="o200k"
    ).train(train)
    base.save_pretrained(folder / "base-tokenizer")
    ist.save_pretrained(folder / "ist-tokenizer")
    results = vs.evaluate({BASE: base, IST: ist}, held_out, ("fertility", "bytes_per_token"))
    tell.tokenizers(results, vs.check(ist))

    with one_thread():
        results += _models(folder, plan, tell, texts=(train, held_out), tokenizers=(base, ist))
    results.save(folder / "results.jsonl")
    tell.models(results, control=CONTROL, adapted=ADAPTED)
    return {"results": results.to_dicts()}


def _models(
    folder: Path,
    plan: Plan,
    tell: story.Story,
    *,
    texts: tuple[vs.Corpus, dict[str, list[str]]],
    tokenizers: tuple[vs.Tokenizer, vs.Tokenizer],
) -> vs.Results:
    """Pre-train, then continue twice: as a control, and moved to the IST tokenizer."""
    import vocabshift as vs

    (train, held_out), (base, ist) = texts, tokenizers

    def go_on(model: Any, tokenizer: Any, text: vs.Corpus, phase: vs.Phase, title: str) -> None:
        config = vs.LoopConfig(
            sequence_length=plan.sequence_length,
            batch_size=plan.batch_size,
            spike_factor=0,  # losses vary that much: few sentences a step, 20 languages
        )
        with tell.training(title) as on_step:
            vs.pretrain(model, tokenizer, text, phases=[phase], config=config, on_step=on_step)

    def measure(model: Any, tokenizer: Any, subject: str) -> vs.Results:
        return vs.score(model, tokenizer, held_out, subject=subject, context=plan.sequence_length)

    seen = _mostly_familiar(train, plan.unfamiliar_every)
    first = vs.Phase(
        n_bytes=int(plan.pretraining_rounds * _n_bytes(seen)), learning_rate=plan.pretraining_rate
    )
    further = vs.Phase(
        trained="embeddings",
        n_bytes=int(plan.further_rounds * _n_bytes(train)),
        learning_rate=plan.further_rate,
    )
    model = make(
        base,
        END_TOKEN,
        hidden_size=plan.hidden_size,
        n_layers=plan.n_layers,
        context=plan.sequence_length,
    )
    tell.model(model, first, further, unfamiliar_every=plan.unfamiliar_every)
    go_on(model, base, seen, first, "pre-training the base model")
    save(model, base, folder / "base-model")
    results = measure(model, base, BEFORE)

    control = copy.deepcopy(model)
    go_on(control, base, train, further, "control: base tokenizer, further text")
    save(control, base, folder / "control-model")
    results += measure(control, base, CONTROL)

    model, tokenizer = vs.transfer(model, old=base, new=ist, init="fvt")
    results += measure(model, tokenizer, MOVED)
    go_on(model, tokenizer, train, further, "IST tokenizer, same further text")
    save(model, tokenizer, folder / "adapted-model")
    return results + measure(model, tokenizer, ADAPTED)


def _n_bytes(corpus: vs.Corpus) -> int:
    return sum(len(text.encode("utf-8")) for _, text in corpus.texts())


def _mostly_familiar(corpus: vs.Corpus, every: int) -> vs.Corpus:
    """All documents in languages the base tokenizer knows, and one in `every` of the others."""
    import vocabshift as vs

    texts: dict[str, list[str]] = {language: [] for language in corpus.languages}
    for language, text in corpus.texts():
        texts[str(language)].append(text)
    familiar = story.familiar()
    return vs.Corpus.from_texts(
        {name: own if name in familiar else own[::every] for name, own in texts.items()}
    )


def _with_groups(corpus: vs.Corpus) -> dict[str, list[str]]:
    """Texts by group and by language; the results get rows for both."""
    texts: dict[str, list[str]] = {group: [] for group in story.GROUPS}
    for language, text in corpus.texts():
        texts[story.group_of(str(language))].append(text)
        texts.setdefault(str(language), []).append(text)
    return {label: of_label for label, of_label in texts.items() if of_label}
