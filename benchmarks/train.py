"""Train plain BPE with vocabshift, with the `tokenizers` library and with gigabpe, in turn.

    python benchmarks/train.py --quick
    python benchmarks/train.py --text corpus.txt --vocab-size 64000 --threads 1 2
    python benchmarks/train.py --text corpus.txt --pattern o200k --peers tokenizers rustbpe ffbpe

A table for every pattern and number of threads. A contestant's checksum is that of its merges, in
order: `tokenizers`, gigabpe and vocabshift must agree. gigabpe takes part where it is installed and
the pattern is gpt2, the only one it has; it reads files, with the end of every line. The merges of
rustbpe (which breaks ties in another order) and ffbpe are not compared.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure

from vocabshift.text.regexes import CL100K, GPT2, O200K

PATTERNS = {"gpt2": GPT2, "cl100k": CL100K, "o200k": O200K}


def lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def with_vocabshift(
    path: Path, *, vocab_size: int, threads: int, pattern: str
) -> Callable[[], int]:
    import vocabshift as vs

    trainer = vs.BpeTrainer(vocab_size=vocab_size, pre_tokenizer=pattern)

    def train() -> int:
        tokenizer = trainer.train(vs.Corpus.from_files({"text": path}), threads=threads)
        return measure.checksum_of(tokenizer.model.merges)

    return train


def with_tokenizers(
    path: Path, *, vocab_size: int, threads: int, pattern: str
) -> Callable[[], int]:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    import json

    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )

    def train() -> int:
        tokenizer.train_from_iterator(lines(path), trainer)
        return measure.checksum_of(json.loads(tokenizer.to_str())["model"]["merges"])

    return train


def with_rustbpe(path: Path, *, vocab_size: int, threads: int, pattern: str) -> Callable[[], None]:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    import rustbpe

    tokenizer = rustbpe.Tokenizer()

    def train() -> None:
        tokenizer.train_from_iterator(lines(path), vocab_size, pattern=PATTERNS[pattern])

    return train


def with_ffbpe(path: Path, *, vocab_size: int, threads: int, pattern: str) -> Callable[[], None]:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    import ffbpe

    def train() -> None:
        counter = ffbpe.PreTokenizer([], pat_str=PATTERNS[pattern]).word_counter()
        counter.add_source(lines(path), max_records=4096, max_bytes=64 << 20, prefetch=1)
        trainer = ffbpe.BpeTrainer([], initial_alphabet="byte_level", tie_break="smallest_pair_id")
        trainer.add_word_counter(counter)
        trainer.train(vocab_size)

    return train


def with_gigabpe(path: Path, *, vocab_size: int, threads: int, pattern: str) -> Callable[[], int]:
    import gigabpe

    assert pattern == "gpt2", pattern
    alphabet = set[int]()  # its vocabulary has no bytes but those of the text
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            alphabet |= set(block)
    size = vocab_size - 256 + len(alphabet)

    def train() -> int:
        _, merges = gigabpe.train_bpe([str(path)], size, pretokenizer="bytelevel", threads=threads)
        return measure.checksum_of(merges)

    return train


PEERS = {
    "tokenizers": with_tokenizers,
    "gigabpe": with_gigabpe,
    "rustbpe": with_rustbpe,
    "ffbpe": with_ffbpe,
}


def peers_of(pattern: str, names: list[str]) -> list[str]:
    """Those of `names` that can train with the pattern; gigabpe where it is installed, too."""
    has_giga = pattern == "gpt2" and find_spec("gigabpe") is not None
    return [name for name in names if name != "gigabpe" or has_giga]


def main() -> None:
    """Run the comparisons and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a UTF-8 text file, one document a line")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--pattern", choices=PATTERNS, nargs="+", default=list(PATTERNS))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=["tokenizers", "gigabpe"])
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick or not args.text:
        args.text, args.vocab_size = sample_text(), 4_000
    n_bytes = args.text.stat().st_size
    for pattern in args.pattern:
        contestants = {"vocabshift": with_vocabshift}
        contestants |= {name: PEERS[name] for name in peers_of(pattern, args.peers)}
        for threads in args.threads:
            settings = {"vocab_size": args.vocab_size, "threads": threads, "pattern": pattern}
            works = {name: partial(work, **settings) for name, work in contestants.items()}
            title = (
                f"Training: {args.text.name}, {n_bytes / 1e6:.1f} MB, {args.vocab_size:,} tokens, "
                f"{pattern}, {threads} thread(s)"
            )
            found = measure.compare(works, args.text, args.runs)
            kind: measure.Kind = "elapsed" if threads > 1 else "CPU"
            print(measure.report(title, found, n_bytes, wanted={"gigabpe": (kind, 3.0)}))
    print(measure.machine())


def sample_text() -> Path:
    """All sample texts of the package in one file."""
    import tempfile

    import vocabshift.demo

    folder = Path(vocabshift.demo.__file__).parent / "texts"
    joined = b"".join(path.read_bytes() for path in sorted(folder.glob("*.txt")))
    path = Path(tempfile.mkdtemp()) / "samples.txt"
    path.write_bytes(joined)
    return path


if __name__ == "__main__":
    main()
