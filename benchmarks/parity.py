"""Parity-aware BPE by vocabshift and by `tokenizers`: time, memory, and whether merges are equal.

    python benchmarks/parity.py --quick
    python benchmarks/parity.py --folder corpus --parallel dev --merges 16000

Folders hold one LANG.txt for each language; the lines of `--parallel` say the same in all of them.
The checksum is of the first `--merges` merges, in order. `tokenizers` counts merges, we count
tokens: where a merge makes a token anew, we take one more. Without `--parallel` it is given the
bytes per character as ratios, which is what we measure.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import measure
from picky import copy_samples


def specs(folder: Path | None) -> tuple[str, ...]:
    """LANG=PATH for each LANG.txt."""
    files = [] if folder is None else sorted(folder.glob("*.txt"))
    return tuple(f"{file.stem}={file}" for file in files)


def lines(folder: Path) -> dict[str, list[str]]:
    return {
        file.stem: file.read_text(encoding="utf-8").splitlines()
        for file in sorted(folder.glob("*.txt"))
    }


def with_vocabshift(
    folder: Path, *, merges: int, parallel: Path | None, threads: int, options: dict[str, Any]
) -> Callable[[], int]:
    import vocabshift as vs
    from vocabshift.trainers.recipes import make_trainer

    options = {"vocab_size": 256 + merges, "parallel": specs(parallel), **options}
    trainer = make_trainer("parity", options)

    def train() -> int:
        tokenizer = trainer.train(vs.Corpus.from_specs(specs(folder)), threads=threads)
        return measure.checksum_of(tokenizer.model.merges[:merges])

    return train


def with_tokenizers(
    folder: Path, *, merges: int, parallel: Path | None, threads: int, options: dict[str, Any]
) -> Callable[[], int]:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from reference.peer import merges_of_parity_trainer
    from vocabshift.text.patterns import NAMED

    if "window_size" in options:
        options = {**options, "variant": "window"}
    texts, dev = lines(folder), None if parallel is None else lines(parallel)
    return lambda: measure.checksum_of(
        merges_of_parity_trainer(texts, NAMED["o200k"], merges, dev, **options)
    )


def compare_times(args: argparse.Namespace) -> None:
    """Print times, memory and whether the merges are equal."""
    options: dict[str, Any] = {}
    if args.global_merges:
        options["global_merges"] = args.global_merges
    if args.window_size:
        options["window_size"] = args.window_size
    shared = {
        "merges": args.merges,
        "parallel": args.parallel,
        "threads": args.threads,
        "options": options,
    }
    works = {
        "vocabshift": partial(with_vocabshift, **shared),
        "tokenizers": partial(with_tokenizers, **shared),
    }
    n_bytes = sum(file.stat().st_size for file in args.folder.glob("*.txt"))
    on = "training text" if args.parallel is None else "parallel text"
    title = (
        f"parity, measured on {on}: {len(specs(args.folder))} languages, {n_bytes / 1e6:.1f} MB, "
        f"{args.merges} merges, {args.threads} thread(s) {options or ''}"
    )
    print(measure.report(title, measure.compare(works, args.folder, args.runs), n_bytes))
    print(measure.machine())


def main() -> None:
    """Run what is asked for and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="training text, LANG.txt files")
    parser.add_argument("--parallel", type=Path, help="LANG.txt files of parallel text")
    parser.add_argument("--merges", type=int, default=2_000)
    parser.add_argument("--global-merges", type=int, default=0)
    parser.add_argument("--window-size", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a few of our own sample texts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if args.quick or not args.folder:
            args.folder, args.parallel = Path(temporary) / "text", Path(temporary) / "parallel"
            args.merges = 1_000
            args.folder.mkdir()
            args.parallel.mkdir()
            copy_samples(args.folder, ("eng", "hin", "tam", "ben"))
            for language, found in lines(args.folder).items():  # no parallel text, but as long
                text = "\n".join([line for line in found if line][:20])
                (args.parallel / f"{language}.txt").write_text(text, encoding="utf-8")
        compare_times(args)


if __name__ == "__main__":
    main()
