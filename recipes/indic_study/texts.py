"""The study's training text: some languages, as many MB of each, without lines in Roman script.

    python recipes/indic_study/texts.py train/ sample/ --languages hi ta --mb 2 --roman-words 10

Lines are drawn at random from the whole file (files are often sorted by source) and keep their
order. A line with more words in Roman script than --roman-words is left out, as in the paper.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_ROMAN = re.compile(r"(?<!\S)[^\w\s]*[A-Za-z]+[^\w\s]*(?!\S)")


def roman_words(line: str) -> int:
    """Words, divided by spaces, that are letters of ASCII and punctuation around them."""
    return len(_ROMAN.findall(line))


def without_roman(lines: Iterable[str], most: int) -> Iterator[str]:
    """Lines of at most so many words in Roman script."""
    return (line for line in lines if roman_words(line) <= most)


def main() -> None:
    """Write the sample, file by file, and say what was left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="folder of LANG.txt")
    parser.add_argument("output", type=Path, help="folder; made where it does not exist")
    parser.add_argument("--languages", nargs="+", required=True)
    parser.add_argument("--mb", type=float, required=True, help="10^6 bytes of each, if there")
    parser.add_argument("--roman-words", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    for language in args.languages:
        file = args.source / f"{language}.txt"
        if not file.is_file():
            parser.error(f"{file} is not there")
        share = args.mb * 1e6 / max(file.stat().st_size, 1)
        chance = random.Random(f"{args.seed} {language}")  # a file's sample knows no other file
        with file.open(encoding="utf-8", newline="\n") as text:
            drawn = [line for line in text if chance.random() < share]
        kept = list(without_roman(drawn, args.roman_words))
        (args.output / file.name).write_text("".join(kept), encoding="utf-8", newline="\n")
        print(f"{language}: {len(kept):,} lines, {len(drawn) - len(kept):,} too Roman")


if __name__ == "__main__":
    main()
