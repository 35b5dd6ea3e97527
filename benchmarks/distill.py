"""Learn rows by token distillation, our way and the published one, in turn, and compare.

    python benchmarks/distill.py --quick
    python benchmarks/distill.py --model models/llama --new runs/ist --text corpus --rows 8000

Both learn the rows of the `--rows` new tokens that are most frequent in the text, and read the same
snippets once, `--tokens` new tokens in all; time grows with the tokens, memory with the rows. The
published code (arXiv 2505.20133, konstantinjdobler/token-distillation, its defaults) reads snippets
one by one, each a step, and runs AdamW over the whole tables, of which kept rows get their gradient
zeroed; both models give their logits. Ours reads snippets of like length together and keeps
gradients and moments of the learned rows alone. Times are those of learning on one thread; the
model and the snippets are loaded before. Rows differ, since the steps do, so only the number of
tokens that were read is compared. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import measure

import vocabshift as vs


def prepared(model: str, new: str, text: Path, rows: int, tokens: int) -> tuple[Any, ...]:
    """The teacher, a student with the new tables, the snippets and the ids of the learned rows."""
    import torch

    from vocabshift.models.tables import find_matrices
    from vocabshift.surgery.plan import make_plan
    from vocabshift.surgery.snippets import find_snippets
    from vocabshift.surgery.student import make_student
    from vocabshift.tokenizer.formats.load import open_tokenizer
    from vocabshift.tokenizer.id_map import find

    torch.set_num_threads(1)
    from transformers import AutoModelForCausalLM

    teacher = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    old, ours = open_tokenizer(model), open_tokenizer(new)
    matrices = find_matrices(teacher)
    options = vs.TransferOptions(id_map=find(new), overrides={})
    plan = make_plan(teacher, matrices, old, ours, options)
    settings = vs.DistillOptions(tokens=tokens)
    corpus = vs.Corpus.from_files({"text": text})
    encoded, _ = ours.encode_batch([document for _, document in corpus.texts()])
    made = plan.match.sources.made
    counts = np.bincount(encoded, minlength=plan.report.rows)[made]
    ids = np.sort(made[np.argsort(-counts, kind="stable")[:rows]])
    found = find_snippets(corpus, old, plan.match.tokenizer, ids, settings)
    student = make_student(teacher, matrices, plan.made, plan.report.rows)
    tell(
        f"{len(ids):,} rows, {(found.counts > 0).sum():,} of them in {len(found.snippets):,} "
        f"snippets of {found.n_new:,} new and {found.n_old:,} old tokens"
    )
    return teacher, student, matrices, plan, found.snippets, ids, settings


def tell(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def by_vocabshift(text: Path, **how: Any) -> Callable[[], int]:
    """Compact rows, snippets together."""
    teacher, student, matrices, plan, snippets, ids, settings = prepared(text=text, **how)
    from vocabshift.surgery.lesson import Lesson
    from vocabshift.surgery.snippets import Around
    from vocabshift.surgery.student import frozen

    def learn() -> int:
        with frozen(teacher, student):
            lesson = Lesson(
                teacher,
                student,
                snippets,
                (Around(), Around()),
                matrices=matrices,
                sources=plan.made,
                ids=ids,
                options=replace(settings, batch_tokens=2048),
                seed=0,
                has_next=True,
            )
            lesson.run(None, lambda _, done, total: tell(f"vocabshift: {done:,} of {total:,}"))
            return lesson.n_tokens

    return learn


def by_whole_tables(text: Path, **how: Any) -> Callable[[], int]:
    """AdamW over every row, one snippet in each step."""
    import torch

    teacher, student, _, _, snippets, ids, _ = prepared(text=text, **how)
    table, head = student.get_input_embeddings().weight, student.get_output_embeddings().weight
    parameters = [table] if head is table else [table, head]

    def learn() -> int:
        n_tokens = 0
        for each in (teacher, student):
            each.requires_grad_(requires_grad=False)
        kept = torch.ones(len(table), dtype=torch.bool)
        kept[torch.from_numpy(ids)] = False
        for parameter in parameters:
            parameter.requires_grad_()
        optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.0)
        for number, at in enumerate(np.random.default_rng(0).permutation(len(snippets)).tolist()):
            snippet = snippets[at]
            n_tokens += len(snippet.new)
            if number % 50 == 0:
                tell(f"whole tables: snippet {number:,} of {len(snippets):,}")
            old, new_ids = (
                torch.from_numpy(each.astype(np.int64))[None] for each in (snippet.old, snippet.new)
            )
            with torch.no_grad():
                wanted = teacher(old, output_hidden_states=True).hidden_states[-1]
            outputs = student(new_ids, output_hidden_states=True)
            reached = outputs.hidden_states[-1][0, snippet.at_new.astype(np.int64)]
            loss = torch.nn.functional.mse_loss(reached, wanted[0, snippet.at_old.astype(np.int64)])
            if new_ids.shape[1] > 1:
                nats = torch.nn.functional.cross_entropy(outputs.logits[0, :-1], new_ids[0, 1:])
                torch.autograd.backward(nats, inputs=[head], retain_graph=True)
            torch.autograd.backward(loss, inputs=[table])
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad[kept] = 0
            optimizer.step()
            optimizer.zero_grad()
        return n_tokens

    return learn


def quick(place: Path) -> tuple[str, str, Path]:
    """A small random Llama with a tokenizer of 4,000 tokens, one of 8,000 superwords, and text."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    words = [f"{a}{b}{c}" for a in "kmtrsln" for b in "aeiou" for c in ("na", "ri", "to", "sel")]
    numbers = np.random.default_rng(1).zipf(1.3, size=60_000) % len(words)
    lines = [" ".join(words[i] for i in numbers[n : n + 40].tolist()) for n in range(0, 60_000, 40)]
    text = place / "text.txt"
    text.write_text("\n".join(lines), encoding="utf-8")
    corpus = vs.Corpus.from_files({"text": text})
    old = vs.BpeTrainer(vocab_size=500).train(corpus)
    new = vs.SuperwordTrainer(vocab_size=8_000).train(corpus)
    config = LlamaConfig(
        vocab_size=old.row_count,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(place / "model")
    old.save_pretrained(place / "old")
    for file in (place / "old").iterdir():
        file.rename(place / "model" / file.name)
    new.save_pretrained(place / "new")
    return str(place / "model"), str(place / "new"), text


def main(words: list[str] | None = None) -> str:
    """Print and return the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", help="folder of a model with its tokenizer")
    parser.add_argument("--new", help="the tokenizer that it is to have")
    parser.add_argument("--text", type=Path, help="a file or folder")
    parser.add_argument("--rows", type=int, default=8_000, help="that are learned")
    parser.add_argument("--tokens", type=int, default=20_000, help="new tokens that are read")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a small random model and text")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        if options.quick:
            options.model, options.new, options.text = quick(Path(place))
        if not (options.model and options.new and options.text):
            parser.error("give --model, --new and --text, or --quick")
        how = {name: getattr(options, name) for name in ("model", "new", "rows", "tokens")}
        contestants = {
            "vocabshift": partial(by_vocabshift, **how),
            "one AdamW over whole tables, one snippet a step": partial(by_whole_tables, **how),
        }
        results = measure.compare(contestants, options.text, options.runs)
    table = report(results, options.rows)
    print(table)
    return table


def report(results: dict[str, list[measure.Run]], rows: int) -> str:
    """Markdown table of medians; ratios are paired run by run."""
    first = next(iter(results))
    n_tokens = {run.checksum for runs in results.values() for run in runs}
    if len(n_tokens) > 1:
        raise RuntimeError(f"they read other texts: {n_tokens} new tokens")
    (read,) = n_tokens
    lines = [
        f"### Token distillation, {rows:,} rows, {read:,} new tokens",
        "",
        f"| | CPU s | CPU s for 1,000 new tokens | peak MB | CPU, times {first} |",
        "|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        cpu = statistics.median(run.cpu for run in runs)
        ratios = [run.cpu / base.cpu for run, base in zip(runs, results[first], strict=True)]
        lines.append(
            f"| {name} | {cpu:.1f} | {1000 * cpu / max(read, 1):.1f} "
            f"| {max(run.peak_mb for run in runs):.0f} | {statistics.median(ratios):.1f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
