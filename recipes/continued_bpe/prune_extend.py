"""Pruning by every order, and pruning with extension at constant size (the paper's Table 4).

    python recipes/continued_bpe/prune_extend.py llama3 --mix et=et.txt@2.3 en=en.txt \\
        --extend-with et=et.txt --eval et=et.dev en=en.dev hi=hi.dev -o runs/continued_bpe/prune

One JSON file for each way, order and number of tokens goes to OUT; one that is there is not made
again. `prune`: tokens go and none come. `prune-extend`, `extend-prune`: as many come by continued
BPE, or --add tokens, in either order of the two. `prune-regen`: as many come from an auxiliary
tokenizer. The orders of `naive.py` stand for what most people do. Exit status 1 where a line that
the base returns comes back otherwise, where another order leaves a new or old token unreachable
that was not, or where the size is not what it was.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jobs import run_all

from vocabshift.checks.vocabulary import bytes_per_token
from vocabshift.extension.baselines import SIZE, Auxiliary, regen, train_auxiliary
from vocabshift.extension.continued import extended, learn
from vocabshift.extension.counting import TextCounts, count_text
from vocabshift.extension.options import ExtensionOptions
from vocabshift.pruning.counts import SourceCounts
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.orders import ORDERS
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer

sys.path.append(str(Path(__file__).parents[1] / "data"))
import naive

PRUNE_SIZES = (1_000, 4_000, 16_000, 64_000, 112_000)
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 112_000)
TABLE8_SIZES = (16_000, 32_000, 64_000, 96_000)
TABLE4 = ("leaf-frequency", "merge", "leaf-id", *naive.ORDERS)


@dataclass(frozen=True)
class Job:
    """One way to another tokenizer."""

    tokenizer: str
    way: str
    order: str
    n_tokens: int  # that go
    n_new: int  # that come
    mix: tuple[str, ...]
    extend_with: tuple[str, ...]
    held_out: tuple[str, ...]
    out: Path

    @property
    def file(self) -> Path:
        """Where its figures go."""
        size = f"{self.n_tokens}" + (
            f"+{self.n_new}" if self.n_new not in (0, self.n_tokens) else ""
        )
        return self.out / f"{self.way}.{self.order}.{size}.json"


@lru_cache(maxsize=1)
def base_of(source: str) -> Tokenizer:
    """The tokenizer that all begins with."""
    return load_tokenizer(source)


@lru_cache(maxsize=1)
def counts_of(mix: tuple[str, ...]) -> SourceCounts:
    """The text that decides what goes."""
    return SourceCounts(Corpus.from_specs(mix))


@lru_cache(maxsize=1)
def words_of(text: tuple[str, ...]) -> TextCounts:
    """The text that new tokens are learned from."""
    return TextCounts(Corpus.from_specs(text))


@lru_cache(maxsize=1)
def auxiliary_of(source: str, text: tuple[str, ...]) -> Auxiliary:
    """The tokenizer that `prune-regen` takes tokens from: its words are those of the base.

    Of twice the usual size, so that it has 64,000 tokens that a pruned base lacks.
    """
    base = base_of(source)
    counted = count_text(base, words_of(text), ExtensionOptions(n_tokens=1))
    return train_auxiliary(base, counted.text, vocab_size=2 * SIZE)


def pruned(base: Tokenizer, job: Job) -> tuple[Tokenizer, int]:
    """Without as many tokens, and how many of these only a tie-break chose."""
    if job.order in naive.ORDERS:
        removed, n_ties = naive.removed(base, job.order, job.n_tokens, counts_of(job.mix))
        return base.without(removed), n_ties
    options = PruningOptions(n_tokens=job.n_tokens, order=job.order)
    done = prune_with_report(base, counts_of(job.mix), options, measure=False)
    return done.tokenizer, done.report.n_decided_by_ties


def longer(base: Tokenizer, job: Job, way: str) -> Tokenizer:
    """With new tokens, by continued BPE or of an auxiliary tokenizer."""
    if way == "regen":
        some = regen(base, auxiliary_of(job.tokenizer, job.extend_with), n_tokens=job.n_new)
        return extended(base, some)
    counted = count_text(base, words_of(job.extend_with), ExtensionOptions(n_tokens=job.n_new))
    return extended(counted.form.tokenizer, learn(counted.form, counted.text, n_tokens=job.n_new))


def run(job: Job) -> dict[str, Any]:
    """Do the job and look at the result."""
    tokenizer = base_of(job.tokenizer)
    n_added = n_ties = 0
    for step in job.way.split("-"):
        if step == "prune":
            tokenizer, n_ties = pruned(tokenizer, job)
        else:
            rows = tokenizer.row_count
            tokenizer = longer(tokenizer, job, step)
            n_added = tokenizer.row_count - rows
    dead = set(unreachable_tokens(tokenizer))
    before = as_it_was(job.tokenizer, job.held_out)
    return {
        "way": job.way,
        "order": job.order,
        "n_tokens": job.n_tokens,
        "n_new": job.n_new,
        "n_decided_by_ties": n_ties,
        "n_added": n_added,
        "rows": tokenizer.row_count,
        "unreachable": len(dead),
        "unreachable_before": len(before.unreachable),
        "newly_unreachable": len(dead - before.unreachable),
        "bytes_per_token": bytes_per_token(tokenizer, Corpus.from_specs(job.held_out)),
        "bytes_per_token_before": before.bytes_per_token,
        "lines": len(before.returned),
        "lossy": sum(
            was != now
            for was, now in zip(before.returned, returned(tokenizer, job.held_out), strict=True)
        ),
    }


@dataclass(frozen=True)
class Before:
    """What the base makes of held-out text."""

    unreachable: frozenset[str]
    bytes_per_token: dict[str, float]
    returned: list[str]  # its lines, encoded and decoded


@lru_cache(maxsize=1)
def as_it_was(source: str, held_out: tuple[str, ...]) -> Before:
    """Measured once for all jobs."""
    base = base_of(source)
    unreachable = frozenset(unreachable_tokens(base))
    own = bytes_per_token(base, Corpus.from_specs(held_out))
    return Before(unreachable, own, returned(base, held_out))


def returned(tokenizer: Tokenizer, held_out: tuple[str, ...]) -> list[str]:
    """The lines of a text as they come back."""
    encoder, lines = Encoder(tokenizer), []
    for documents in Corpus.from_specs(held_out).batches():
        lines += encoder.decode_batch(*encoder.encode_batch(list(documents.texts())))
    return lines


def complaints(job: Job, result: dict[str, Any], rows: int) -> list[str]:
    """What is not as promised."""
    found = []
    if result["lossy"]:
        found.append(f"{result['lossy']} lines do not come back")
    breaks = job.way == "prune-regen" or job.order in naive.ORDERS
    if result["newly_unreachable"] and not breaks:
        found.append(f"{result['newly_unreachable']} tokens became unreachable")
    if result["rows"] != rows - result["n_tokens"] + result["n_added"]:
        found.append(f"{result['rows']} rows, from {rows}")
    return [f"{job.file.name}: {what}" for what in found]


def main() -> int:
    """Do what is not done yet; 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", metavar="TOKENIZER")
    parser.add_argument("--mix", metavar="SPEC", nargs="+", required=True, help="to prune by")
    parser.add_argument("--extend-with", metavar="SPEC", nargs="*", default=[])
    parser.add_argument("--eval", metavar="SPEC", nargs="+", required=True)
    parser.add_argument("--orders", nargs="+", choices=(*ORDERS, *naive.ORDERS))
    parser.add_argument("--prune-sizes", type=int, nargs="+", default=PRUNE_SIZES)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--table8-sizes", type=int, nargs="+", default=TABLE8_SIZES)
    parser.add_argument("--add", type=int, default=16_000, help="new tokens of Table 8")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("-j", "--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    orders = args.orders or (*ORDERS, *naive.ORDERS)
    ways = [("prune", order, n, 0) for order in orders for n in args.prune_sizes]
    if args.extend_with:
        steps = ("prune-extend", "prune-regen")
        ways += [(way, order, n, n) for way in steps for order in TABLE4 for n in args.sizes]
        steps = ("prune-extend", "extend-prune")
        ways += [(way, "leaf-frequency", n, args.add) for way in steps for n in args.table8_sizes]
    texts = tuple(args.mix), tuple(args.extend_with), tuple(args.eval)
    jobs = [Job(args.tokenizer, *way, *texts, args.out) for way in dict.fromkeys(ways)]
    results = run_all(run, jobs, args.processes)
    rows = load_tokenizer(args.tokenizer).row_count
    broken = [
        line
        for job, result in zip(jobs, results, strict=True)
        for line in complaints(job, result, rows)
    ]
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
