"""Train PickyBPE and OBPE with vocabshift and with the plain references of the tests, and compare.

    python benchmarks/picky.py --quick
    python benchmarks/picky.py --folder five --vocab-size 280 --high hi mr

The references (tests/reference/picky.py, overlap.py) follow the rules of the authors' programs and
count all words anew after every event, so few tokens must do. Both are given the words of `\\S+`;
the references' are counted outside the clock. The checksum is of all tokens, in order, and of those
that are kept. How the authors' own programs compare is told in RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import measure

WORDS = r"\S+"
THRESHOLD = 0.9


def corpus_of(folder: Path):
    """One language for each LANG.txt."""
    import vocabshift as vs

    return vs.Corpus.from_files({file.stem: file for file in sorted(folder.glob("*.txt"))})


def picky(folder: Path, *, vocab_size: int) -> Callable[[], int]:
    from vocabshift.text.counting import CorpusReader
    from vocabshift.text.patterns import get_pattern
    from vocabshift.trainers.base import RunContext
    from vocabshift.trainers.picky import PickyTrainer

    trainer = PickyTrainer(vocab_size=vocab_size, pre_tokenizer=WORDS, threshold=THRESHOLD)

    def train() -> int:
        reader = CorpusReader(corpus_of(folder), get_pattern(WORDS))
        trained = trainer.learn(reader, RunContext())
        return checksum(trained.tokens, trained.present)

    return train


def reference_picky(folder: Path, *, vocab_size: int) -> Callable[[], int]:
    from reference.picky import train
    from vocabshift.text.counting import CorpusReader
    from vocabshift.text.patterns import get_pattern

    counter = CorpusReader(corpus_of(folder), get_pattern(WORDS)).count_words()
    words = {word: count for word, count, _ in counter.joined_words([1] * counter.group_count)}

    def run() -> int:
        state = train(words, vocab_size, THRESHOLD)
        return checksum(state.tokens, state.present)

    return run


def overlap(folder: Path, *, vocab_size: int, high: tuple[str, ...]) -> Callable[[], int]:
    from vocabshift.text.counting import CorpusReader
    from vocabshift.text.patterns import get_pattern
    from vocabshift.trainers.base import RunContext
    from vocabshift.trainers.overlap import OverlapTrainer

    trainer = OverlapTrainer(vocab_size=vocab_size, pre_tokenizer=WORDS, high_resource=high)

    def train() -> int:
        reader = CorpusReader(corpus_of(folder), get_pattern(WORDS), by_language=True)
        return checksum(trainer.learn(reader, RunContext())[0].tokens)

    return train


def reference_overlap(folder: Path, *, vocab_size: int, high: tuple[str, ...]) -> Callable[[], int]:
    from reference.overlap import train
    from vocabshift.text.counting import CorpusReader
    from vocabshift.text.patterns import get_pattern

    reader = CorpusReader(corpus_of(folder), get_pattern(WORDS), by_language=True)
    counter = reader.count_words()
    words: dict[bytes, list[int]] = {}
    for number in range(len(reader.groups)):
        for word, count in counter.words(number):
            words.setdefault(word, [0] * len(reader.groups))[number] += count
    is_high = [group.language in high for group in reader.groups]
    return lambda: checksum(train(words, vocab_size, is_high)[0])


def checksum(tokens: list[bytes], present: list[bool] | None = None) -> int:
    return measure.checksum_of([[token.hex() for token in tokens], present])


def main() -> None:
    """Run the comparison and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="of LANG.txt files")
    parser.add_argument("--vocab-size", type=int, default=280)
    parser.add_argument("--high", nargs="+", default=["hi"], help="of high resources")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a few of our own sample texts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if args.quick or not args.folder:
            args.folder, args.high = Path(temporary), ["hin"]
            copy_samples(args.folder, ("hin", "mar", "npi"))
        n_bytes = sum(file.stat().st_size for file in args.folder.glob("*.txt"))
        size, high = args.vocab_size, tuple(args.high)
        for name, ours, reference in (
            ("PickyBPE", picky, reference_picky),
            ("OBPE", partial(overlap, high=high), partial(reference_overlap, high=high)),
        ):
            works = {
                "vocabshift": partial(ours, vocab_size=size),
                "plain reference": partial(reference, vocab_size=size),
            }
            title = f"{name}: {args.folder.name}, {n_bytes / 1e6:.1f} MB, {size} tokens, 1 thread"
            found = measure.compare(works, args.folder, args.runs)
            print(measure.report(title, found, n_bytes), flush=True)
    print(measure.machine())


def copy_samples(folder: Path, names: tuple[str, ...]) -> None:
    """Texts of the package, as a folder."""
    from vocabshift.demo import story

    source = Path(story.__file__).parent / "texts"
    for name in names:
        (folder / f"{name}.txt").write_bytes((source / f"{name}.txt").read_bytes())


if __name__ == "__main__":
    main()
