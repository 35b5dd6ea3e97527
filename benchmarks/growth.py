"""How time and memory of training grow: with the text, and with the vocabulary.

    python benchmarks/growth.py --texts b/s1.txt b/s5.txt b/s20.txt b/s50.txt b/b100.txt b/b300.txt
    python benchmarks/growth.py --texts b/s1.txt b/s5.txt --vocab-sizes 8000 16000 --runs 1

The texts are described in benchmarks/RESULTS.md. One table for each recipe (bpe: one stage,
ist: both stages). In the first half the text grows and the vocabulary is the first of
`--vocab-sizes`; in the second the vocabulary grows on the largest text. CPU and elapsed seconds are
the least of `--runs`, memory is the peak above that of a process that has loaded everything. The
exponent is that of CPU seconds against the row before, in what grew: 1 is linear, 2 quadratic.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure

VOCAB_SIZES = (64_000, 32_000, 128_000, 256_000)  # the first is that of the growing text


def training(path: Path, *, recipe: str, vocab_size: int, threads: int) -> Callable[[], int]:
    import vocabshift as vs
    from vocabshift.trainers.recipes import RECIPES

    trainer = RECIPES[recipe].trainer(vocab_size=vocab_size)

    def train() -> int:
        tokenizer = trainer.train(vs.Corpus.from_files({"text": path}), threads=threads)
        return measure.checksum_of(tokenizer.model.merges)  # the same in every run, or we see it

    return train


def nothing(path: Path) -> Callable[[], int]:
    """What a process takes that has loaded all of it."""
    training(path, recipe="ist", vocab_size=300, threads=1)
    return lambda: 0


def best(path: Path, runs: int, **options: object) -> measure.Run:
    """The least of some runs, whose merges must be the same."""
    found = [measure.run_once(partial(training, **options), path) for _ in range(runs)]
    if len({run.checksum for run in found}) > 1:
        raise SystemExit(f"{path.name}, {options}: runs differ in their merges")
    least = min(found, key=lambda run: run.cpu)
    return measure.Run(
        min(run.elapsed for run in found),
        least.cpu,
        max(run.peak_mb for run in found),
        least.checksum,
    )


def table(
    recipe: str, cases: list[tuple[float, Path, int]], runs: int, threads: int, floor: float
) -> None:
    """Rows of cases (what grows, text, vocabulary size), each against the one before."""
    before = None
    for grown, path, vocab_size in cases:
        n_bytes = path.stat().st_size
        least = best(path, runs, recipe=recipe, vocab_size=vocab_size, threads=threads)
        power = ""
        if before is not None:
            power = f"{math.log(least.cpu / before[1]) / math.log(grown / before[0]):.2f}"
        before = grown, least.cpu
        peak = max(least.peak_mb - floor, 0)
        print(
            f"| {n_bytes / 1e6:.1f} | {vocab_size:,} | {least.elapsed:.2f} | {least.cpu:.2f} "
            f"| {power} | {peak:.0f} | {peak * 2**20 / n_bytes:.2f} |",
            flush=True,
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, nargs="+", required=True)
    parser.add_argument("--recipes", nargs="+", default=["bpe", "ist"])
    parser.add_argument("--vocab-sizes", type=int, nargs="+", default=VOCAB_SIZES)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=int, default=2)
    args = parser.parse_args()
    texts = sorted(args.texts, key=lambda path: path.stat().st_size)
    floor = measure.run_once(nothing, texts[0]).peak_mb
    for recipe in args.recipes:
        print(f"### Growth: {recipe}, {args.threads} thread(s)\n")
        print("| MB | vocabulary | elapsed s | CPU s | exponent | peak MB | bytes per byte |")
        print("|---|---|---|---|---|---|---|")
        shared = {"runs": args.runs, "threads": args.threads, "floor": floor}
        by_text = [(float(p.stat().st_size), p, args.vocab_sizes[0]) for p in texts]
        table(recipe, by_text, **shared)
        if len(args.vocab_sizes) > 1:
            table(recipe, [(float(n), texts[-1], n) for n in sorted(args.vocab_sizes)], **shared)
        print()
    print(measure.machine())


if __name__ == "__main__":
    main()
