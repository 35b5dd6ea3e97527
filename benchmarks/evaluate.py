"""Many tokenizers on many languages: how long `vocabshift evaluate` takes, and what takes it.

    python benchmarks/evaluate.py --quick
    python benchmarks/evaluate.py --tokenizers FOLDER… --text FOLDER --threads 2 --runs 3

`--text` is a folder of LANG.txt, a line a sentence; tokenizers are folders or files. Measured are
loading alone, the default metrics and all metrics, each from tokenizer files and text to rows in a
process of its own; the first tokenizer is the base as well. The share of loading is that of CPU
time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure
import train
from encode import superword_tokenizer

Names = tuple[str, ...]


def with_vocabshift(
    path: Path, *, tokenizers: Names, threads: int, metrics: Names | None
) -> Callable[[], int]:
    """`metrics=None` only loads; the checksum is of the rows, or of the sizes."""
    import vocabshift as vs
    from vocabshift.tokenizer.formats.load import open_tokenizer

    def work() -> int:
        loaded = [open_tokenizer(tokenizer) for tokenizer in tokenizers]
        if metrics is None:
            return measure.checksum_of([tokenizer.vocab_size for tokenizer in loaded])
        files = {file.stem: file for file in sorted(path.glob("*.txt"))}
        corpus = vs.Corpus.from_files(files)
        results = vs.evaluate(loaded, corpus, metrics, base=loaded[0], threads=threads)
        return measure.checksum_of(results.to_dicts())

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizers", nargs="+", help="folders or files")
    parser.add_argument("--text", type=Path, help="a folder of LANG.txt")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.quick or not args.text:
            sample = train.sample_text()
            args.text = Path(folder)
            lines = sample.read_text(encoding="utf-8").splitlines()
            for number, name in enumerate(("one", "two", "three")):
                text = "\n".join(lines[number::3])
                (args.text / f"{name}.txt").write_text(text, encoding="utf-8")
            args.tokenizers = args.tokenizers or [str(superword_tokenizer(sample))]
        _report(args.text, tuple(args.tokenizers), threads=args.threads, runs=args.runs)


def _report(text: Path, tokenizers: Names, *, threads: int, runs: int) -> None:
    common = {"tokenizers": tokenizers, "threads": threads}
    works = {
        "loading": partial(with_vocabshift, metrics=None, **common),
        "default metrics": partial(
            with_vocabshift, metrics=("fertility", "bytes_per_token"), **common
        ),
        "all metrics": partial(with_vocabshift, metrics=("all",), **common),
    }
    files = sorted(text.glob("*.txt"))
    results = measure.compare(works, text, runs)
    loading = min(run.cpu for run in results["loading"])
    print(f"### {len(tokenizers)} tokenizers, {len(files)} languages, {threads} thread(s)\n")
    print("| | elapsed s | CPU s | peak MB | share of loading |\n|---|---|---|---|---|")
    for name, measured in results.items():
        cpu = min(run.cpu for run in measured)
        elapsed, peak = min(run.elapsed for run in measured), max(run.peak_mb for run in measured)
        print(f"| {name} | {elapsed:.1f} | {cpu:.1f} | {peak:.0f} | {loading / cpu:.0%} |")
    n_bytes = sum(file.stat().st_size for file in files)
    print(f"\n{n_bytes / 1e6:.1f} MB of text; best of {runs} runs. {measure.machine()}")


if __name__ == "__main__":
    main()
