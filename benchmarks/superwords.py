"""Train superwords with vocabshift and with `tokenizers`, in turn, and compare.

    python benchmarks/superwords.py --quick
    python benchmarks/superwords.py --text corpus.txt --vocab-size 20000 --transition 0.8 --runs 3

Nothing on PyPI trains superwords in two stages. The nearest is the trainer of `tokenizers` without
a word split: pieces as large as ours, merged from single bytes. It learns something else, so the
results are not compared. Ours is measured twice: both stages from the text, and stage 2 alone (from
the text and the words of stage 1, which are learned outside the clock).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure
from train import lines, sample_text

from vocabshift.text.regexes import BOUNDARIES

ROW = "superbpe-stage2"


def with_vocabshift(
    path: Path, *, vocab_size: int, transition: float, threads: int
) -> Callable[[], None]:
    import vocabshift as vs

    trainer = vs.SuperBpeTrainer(vocab_size=vocab_size, transition=transition)

    def train() -> None:
        trainer.train(vs.Corpus.from_files({"text": path}), threads=threads)

    return train


def stage_2_alone(
    path: Path, *, vocab_size: int, transition: float, threads: int
) -> Callable[[], None]:
    import vocabshift as vs
    from vocabshift.text.counting import CorpusReader
    from vocabshift.text.patterns import get_pattern
    from vocabshift.trainers.base import RunContext
    from vocabshift.trainers.stages import SuperwordRule, WordRule, WordWeight, learn_words
    from vocabshift.trainers.superword import learn_superwords

    work = RunContext(threads=threads)
    pieces = get_pattern(ROW)
    reader = CorpusReader(vs.Corpus.from_files({"text": path}), (*pieces, *get_pattern("o200k")))
    words = learn_words(reader, WordRule(round(transition * vocab_size)), WordWeight(), work)

    def train() -> None:
        learn_superwords(reader.again(pieces), words, SuperwordRule(vocab_size, max_words=4), work)

    return train


def with_tokenizers(path: Path, *, vocab_size: int, threads: int) -> Callable[[], None]:
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(BOUNDARIES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return lambda: tokenizer.train_from_iterator(lines(path), trainer)


def main() -> None:
    """Run the comparison and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a UTF-8 text file, one document a line")
    parser.add_argument("--vocab-size", type=int, default=20_000)
    parser.add_argument("--transition", type=float, default=0.8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick or not args.text:
        args.text, args.vocab_size = sample_text(), 4_000
    options = {"vocab_size": args.vocab_size, "threads": args.threads}
    works = {
        "stage 2 of vocabshift": partial(stage_2_alone, transition=args.transition, **options),
        "vocabshift, both stages": partial(with_vocabshift, transition=args.transition, **options),
        "tokenizers": partial(with_tokenizers, **options),
    }
    n_bytes = args.text.stat().st_size
    title = (
        f"Superwords: {args.text.name}, {n_bytes / 1e6:.1f} MB, {args.vocab_size:,} tokens, "
        f"{args.threads} thread(s)"
    )
    print(measure.report(title, measure.compare(works, args.text, args.runs), n_bytes))
    print(measure.machine())


if __name__ == "__main__":
    main()
