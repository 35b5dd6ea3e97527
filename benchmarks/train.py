"""Train plain BPE with vocabshift and with the `tokenizers` library, in turn, and compare.

    python benchmarks/train.py --quick
    python benchmarks/train.py --text corpus.txt --vocab-size 64000 --runs 3 [--peers rustbpe ffbpe]
    python benchmarks/train.py --text corpus.txt --pattern gpt2 --peers gigabpe

A contestant's checksum is that of its merges, in order: `tokenizers`, gigabpe and vocabshift must
agree. gigabpe knows GPT-2's pattern alone, and reads files, with the end of every line. The merges
of rustbpe (which breaks ties in another order) and ffbpe are not compared.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure

from vocabshift.text.regexes import GPT2, O200K

PATTERNS = {"o200k": O200K, "gpt2": GPT2}


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

    if pattern != "gpt2":
        raise SystemExit("gigabpe has no pattern but gpt2: --pattern gpt2")
    alphabet = set[int]()  # its vocabulary has no bytes but those of the text
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            alphabet |= set(block)
    size = vocab_size - 256 + len(alphabet)

    def train() -> int:
        _, merges = gigabpe.train_bpe([str(path)], size, pretokenizer="bytelevel", threads=threads)
        return measure.checksum_of(merges)

    return train


PEERS = {"rustbpe": with_rustbpe, "ffbpe": with_ffbpe, "gigabpe": with_gigabpe}


def main() -> None:
    """Run the comparison and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a UTF-8 text file, one document a line")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pattern", choices=PATTERNS, default="o200k")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[])
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick or not args.text:
        args.text, args.vocab_size = sample_text(), 4_000
    contestants = {"vocabshift": with_vocabshift, "tokenizers": with_tokenizers}
    contestants |= {name: PEERS[name] for name in args.peers}
    settings = {"vocab_size": args.vocab_size, "threads": args.threads, "pattern": args.pattern}
    works = {name: partial(work, **settings) for name, work in contestants.items()}
    n_bytes = args.text.stat().st_size
    title = (
        f"Training: {args.text.name}, {n_bytes / 1e6:.1f} MB, {args.vocab_size:,} tokens, "
        f"{args.pattern}, {args.threads} thread(s)"
    )
    print(measure.report(title, measure.compare(works, args.text, args.runs), n_bytes))
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
