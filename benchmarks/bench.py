"""The five figures of the README, measured on this machine: `make bench`, about two minutes.

    python benchmarks/bench.py
    python benchmarks/bench.py --text corpus.txt --runs 5

Each says how many times less CPU time vocabshift takes than what people use without it, on one
thread, on the same text, in turn; where both must give one result, the results are compared. The
text is 4 MB each of Hindi, Tamil and English from `../shared/data/train`, or the sample texts of
the package, which are so short that starting is much of the time. fastokens is timed too if it is
installed. `--write` puts the figures into the README.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import distill
import encode
import measure
import pack
import score
import train

import vocabshift as vs

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data" / "train"
LANGUAGES, BYTES_OF_EACH = ("hi", "ta", "en"), 4_000_000
FIGURES = {
    "train BPE": "`tokenizers`",
    "encode with BPE": "`tokenizers`",
    "encode with superwords": "`tokenizers`",
    "pack text for training": "`datasets.map` over `tokenizers`",
    "score: bits per byte": "a forward pass for each document",
}
"""What is done, and beside what."""

_ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| ([\d.]+) \|$", flags=re.MULTILINE)


def figures_of(readme: str) -> dict[str, float]:
    """The figures in a README's table."""
    return {what: float(times) for what, _, times in _ROW.findall(readme) if what in FIGURES}


def write(readme: str, found: dict[str, float]) -> str:
    """The README with these figures in its table."""

    def row(match: re.Match[str]) -> str:
        what, beside, _ = match.groups()
        return f"| {what} | {beside} | {found[what]:.1f} |" if what in found else match.group()

    return _ROW.sub(row, readme)


def sample(place: Path) -> tuple[Path, int]:
    """The text, and how many tokens to learn of it."""
    files = {language: SHARED / f"{language}.txt.zst" for language in LANGUAGES}
    if not all(file.exists() for file in files.values()):
        print(f"{SHARED} is not there: on the package's sample texts, which are short\n")
        return train.sample_text(), 2_000
    path = place / "sample.txt"
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for language, file in files.items():
            n_bytes = 0
            for _, text in vs.Corpus.from_files({language: file}).texts():
                out.write(f"{text}\n")
                n_bytes += len(text.encode()) + 1
                if n_bytes > BYTES_OF_EACH:
                    break
    return path, 32_000


def times(works: dict[str, measure.Work], path: Path, runs: int) -> dict[str, float]:
    """How many times the CPU time of "vocabshift" each other one takes, median of the rounds."""
    results = measure.compare(works, path, runs)
    ours = results.pop("vocabshift")
    for name, own in results.items():
        if {run.checksum for run in own} != {run.checksum for run in ours}:
            raise SystemExit(f"{name} gives another result than vocabshift; nothing to compare")
    return {
        name: statistics.median(run.cpu / base.cpu for run, base in zip(own, ours, strict=True))
        for name, own in results.items()
    }


def encoders(path: Path, tokenizer: Path, runs: int) -> tuple[float, list[str]]:
    """Beside `tokenizers`, and a line about each other encoder."""
    names = ["vocabshift", "tokenizers", "fastokens"]
    options = {"tokenizer": tokenizer, "threads": 1, "before": 0, "short": False}
    results, missing = encode.compare(names, path, runs, **options)
    table = {row["name"]: row for row in encode.rows(results, path.stat().st_size)}
    lines = [
        f"{name}: {row['CPU ratio']:.1f}" + ("" if row["same ids"] else " (other ids)")
        for name, row in table.items()
        if name not in ("vocabshift", "tokenizers")
    ]
    return table["tokenizers"]["CPU ratio"], lines + [
        f"{name}: {why}" for name, why in missing.items()
    ]


def bits_per_byte(place: Path, runs: int) -> float:
    """A small random Llama, on documents of many lengths."""
    import torch

    from vocabshift.models.load import load_causal_model
    from vocabshift.tokenizer.formats.load import open_tokenizer

    folder, _, text = distill.quick(place)
    torch.set_num_threads(1)
    model, tokenizer = load_causal_model(folder, device="cpu"), open_tokenizer(folder)
    texts = score.texts_of(text, tokenizer, 8_000)
    works = score.of_score(model, tokenizer, texts, 256)
    meter, ratios = score.Meter(model), []
    for number in range(runs + 1):
        bare, ours = (meter.timed(works[name])[0] for name in ("bare", "vocabshift"))
        ratios += [bare / ours] if number else []  # the first round imports and probes
    return statistics.median(ratios)


def measured(
    path: Path, vocab_size: int, place: Path, runs: int
) -> tuple[dict[str, float], list[str]]:
    """The figures by name, and lines about other encoders."""
    found, notes = {}, []

    def announce(what: str) -> None:
        print(f"{what} …", file=sys.stderr, flush=True)

    announce("train BPE")
    options = {"vocab_size": vocab_size, "threads": 1, "pattern": "o200k"}
    works = {"vocabshift": train.with_vocabshift, "tokenizers": train.with_tokenizers}
    of_training = times(
        {name: partial(work, **options) for name, work in works.items()}, path, runs
    )
    found["train BPE"] = of_training["tokenizers"]
    corpus = vs.Corpus.from_files({"text": path})
    for kind, trainer in (("BPE", vs.BpeTrainer), ("superwords", vs.SuperwordTrainer)):
        announce(f"encode with {kind}")
        folder = trainer(vocab_size=vocab_size).train(corpus).save_pretrained(place / kind)
        found[f"encode with {kind}"], others = encoders(path, folder, runs)
        notes += [f"{kind} beside {line}" for line in others]
    announce("pack text for training")
    if importlib.util.find_spec("datasets"):
        own = partial(pack.with_vocabshift, tokenizer=folder, threads=1, form="numpy")
        theirs = partial(pack.with_datasets, tokenizer=folder, threads=1, processes=False)
        of_packing = times({"vocabshift": own, "datasets.map": theirs}, path, runs)
        found["pack text for training"] = of_packing["datasets.map"]
    announce("score")
    if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
        found["score: bits per byte"] = bits_per_byte(place, runs)
    return found, notes


def main() -> None:
    """Print the README's figures and those of this machine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a UTF-8 text file of some megabytes")
    parser.add_argument("--vocab-size", type=int, default=32_000, help="tokens to learn of --text")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    options = parser.parse_args()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = figures_of(readme)
    with tempfile.TemporaryDirectory() as place:
        path, vocab_size = (
            (options.text, options.vocab_size) if options.text else sample(Path(place))
        )
        found, notes = measured(path, vocab_size, Path(place), options.runs)
        size = path.stat().st_size / 1e6
    print(f"{size:.1f} MB of text, {vocab_size:,} tokens, one thread, times less CPU time:\n")
    print("| | beside | README | here |\n|---|---|---:|---:|")
    for what, beside in FIGURES.items():
        here = f"{found[what]:.1f}" if what in found else "not installed"
        print(f"| {what} | {beside} | {stated[what]:.1f} | {here} |")
    print("", *notes, "", measure.machine(), sep="\n")
    if options.write:
        (ROOT / "README.md").write_text(write(readme, found), encoding="utf-8")


if __name__ == "__main__":
    main()
