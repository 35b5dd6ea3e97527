"""Pruning by every order, and pruning with extension at constant size (the paper's Table 4).

    python recipes/continued_bpe/prune_extend.py llama3 --mix et=et.txt@2.3 en=en.txt \\
        --extend-with et=et.txt --eval et=et.dev en=en.dev hi=hi.dev -o runs/continued_bpe/prune

One JSON file for each way, order and number of tokens goes to OUT; one that is there is not made
again. `prune`: tokens go and none come. `prune-extend`, `extend-prune`: as many come by continued
BPE, in either order of the two. `prune-regen`: as many come from an auxiliary tokenizer. Exit
status 1 where a line that the base returns comes back otherwise, where ours leaves a new or old
token unreachable that was not, or where the size is not what it was.
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
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.pruning.effects import PruneReport
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.orders import ORDERS
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer

PRUNE_SIZES = (1_000, 4_000, 16_000, 32_000, 64_000, 100_000, 112_000)
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
TABLE4 = ("leaf-frequency", "merge", "frequency", "leaf-id", "id")
BY_MERGES = ("leaf-frequency", "merge")  # the two that the paper finds best


@dataclass(frozen=True)
class Job:
    """One way to another tokenizer."""

    tokenizer: str
    way: str
    order: str
    n_tokens: int
    mix: tuple[str, ...]
    extend_with: tuple[str, ...]
    held_out: tuple[str, ...]
    out: Path

    @property
    def file(self) -> Path:
        """Where its figures go."""
        return self.out / f"{self.way}.{self.order}.{self.n_tokens}.json"


@lru_cache(maxsize=1)
def base_of(source: str) -> Tokenizer:
    """The tokenizer that all begins with."""
    return load_tokenizer(source)


def run(job: Job) -> dict[str, Any]:
    """Do the job and look at the result."""
    base = base_of(job.tokenizer)
    text = Corpus.from_specs(job.extend_with)
    tokenizer, n_added = base, 0
    pruning: PruneReport | None = None
    for step in job.way.split("-"):
        if step == "prune":
            # As many go as have come, if any did.
            done = prune_with_report(
                tokenizer,
                Corpus.from_specs(job.mix),
                PruningOptions(n_tokens=n_added or job.n_tokens, order=job.order),
                measure=False,
            )
            tokenizer, pruning = done.tokenizer, done.report
        else:
            method = "continued" if step == "extend" else step
            extension = extend_with_report(
                tokenizer, text, ExtensionOptions(n_tokens=job.n_tokens, method=method)
            )
            tokenizer, n_added = extension.tokenizer, extension.report.n_added
    assert pruning is not None
    dead = set(unreachable_tokens(tokenizer))
    return {
        "way": job.way,
        "order": job.order,
        "n_tokens": job.n_tokens,
        "n_removed": pruning.n_removed,
        "n_decided_by_ties": pruning.n_decided_by_ties,
        "n_added": n_added,
        "rows": tokenizer.row_count,
        "unreachable": len(dead),
        "newly_unreachable": len(dead - set(unreachable_tokens(base))),
        **judged(base, tokenizer, Corpus.from_specs(job.held_out)),
    }


def judged(base: Tokenizer, tokenizer: Tokenizer, corpus: Corpus) -> dict[str, Any]:
    """Bytes per token by language, and lines that do not come back as the base gives them."""
    before, after = Encoder(base), Encoder(tokenizer)
    lines = lost = 0
    for documents in corpus.batches():
        texts = list(documents.texts())
        returned = [e.decode_batch(*e.encode_batch(texts)) for e in (before, after)]
        lines += len(texts)
        lost += sum(was != now for was, now in zip(*returned, strict=True))
    return {"bytes_per_token": bytes_per_token(tokenizer, corpus), "lines": lines, "lossy": lost}


def complaints(job: Job, result: dict[str, Any], rows: int) -> list[str]:
    """What is not as promised."""
    found = []
    if result["lossy"]:
        found.append(f"{result['lossy']} lines do not come back")
    if result["newly_unreachable"] and job.way != "prune-regen":
        found.append(f"{result['newly_unreachable']} tokens became unreachable")
    if result["rows"] != rows - result["n_removed"] + result["n_added"]:
        found.append(f"{result['rows']} rows, from {rows}")
    return [f"{job.file.name}: {what}" for what in found]


def main() -> int:
    """Do what is not done yet; 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", metavar="TOKENIZER")
    parser.add_argument("--mix", metavar="SPEC", nargs="+", required=True, help="to prune by")
    parser.add_argument("--extend-with", metavar="SPEC", nargs="+", required=True)
    parser.add_argument("--eval", metavar="SPEC", nargs="+", required=True)
    parser.add_argument("--prune-sizes", type=int, nargs="+", default=PRUNE_SIZES)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("-j", "--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    ways = [
        *(("prune", order, n) for order in ORDERS for n in args.prune_sizes),
        *(("prune-extend", order, n) for order in TABLE4 for n in args.sizes),
        *(("extend-prune", order, n) for order in BY_MERGES for n in args.sizes),
        *(("prune-regen", "leaf-frequency", n) for n in args.sizes),
    ]
    texts = tuple(args.mix), tuple(args.extend_with), tuple(args.eval)
    jobs = [Job(args.tokenizer, *way, *texts, args.out) for way in ways]
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
