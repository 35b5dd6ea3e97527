"""Text for the recipe: the beginning of each source as OUT/LANG.jsonl, and documents held out.

    python recipes/llama_indic/text.py take recipes/llama_indic/sources.txt --size 1GB -o runs/text

A line of the file is a SPEC and, after a blank, how many times SIZE is taken of it, where not once
(so no path may end in a blank and a number).
Data sets of the Hub are streamed: no more than that is read. `samples` writes our own sample texts
as train/LANG.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import vocabshift as vs
from vocabshift.cli.options import size
from vocabshift.demo import story
from vocabshift.storage.output import atomic_folder

EVERY, MOST = 200, 300
"""One document in 200 is held out, up to 300 of a source; the first one is, so there is one."""
NAMES = {"hin": "hi", "tam": "ta", "eng": "en"}
"""Our sample texts, as the recipe's languages are called."""
SOURCE = re.compile(r"(.*?)(?: +(\d+(?:\.\d+)?))?")
"""A SPEC, and how many times SIZE is taken of it."""


def take(sources: Path, n_bytes: int, out: Path) -> None:
    """Write the beginning of every source; several sources of a language share its files."""
    lines = [line.split("#")[0].strip() for line in sources.read_text("utf-8").splitlines()]
    specs = [_source(os.path.expandvars(line), sources) for line in lines if line]
    with atomic_folder(out) as folder:
        (folder / "held-out").mkdir()
        for spec, times in specs:
            (language,) = vs.Corpus.from_specs([spec]).languages or [None]
            if language is None:
                raise SystemExit(f"{sources}: {spec} has no language; write it as LANG=…")
            n_read = 0
            name = f"{language}.jsonl"
            with (
                (folder / name).open("a", encoding="utf-8") as kept,
                (folder / "held-out" / name).open("a", encoding="utf-8") as held,
            ):
                for number, text in enumerate(beginning(spec, round(times * n_bytes))):
                    is_held = number % EVERY == 0 and number < EVERY * MOST
                    line = json.dumps({"text": text}, ensure_ascii=False) + "\n"
                    (held if is_held else kept).write(line)
                    n_read += len(text.encode())
            print(f"{language}: {n_read:,} bytes of {spec}", file=sys.stderr)


def _source(line: str, file: Path) -> tuple[str, float]:
    """The parts of a line."""
    found = SOURCE.fullmatch(line)
    assert found is not None  # as any line
    spec, times = found.groups()
    if "$" in spec:
        raise SystemExit(f"{file}: {spec} names a variable that is not set")
    return spec, float(times or 1)


def beginning(spec: str, n_bytes: int) -> Iterator[str]:
    """Documents until they hold `n_bytes`."""
    for _, text in vs.Corpus.from_specs([spec]).texts():
        yield text
        n_bytes -= len(text.encode())
        if n_bytes <= 0:
            return


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("take", "samples"))
    parser.add_argument("sources", type=Path, nargs="?", help="a SPEC a line, and a number")
    parser.add_argument(
        "--size", type=size, default=10**9, help="of text, each source times its number"
    )
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    if args.what == "samples":
        story.write_split(args.out)
        for name, ours in NAMES.items():
            (args.out / "train" / f"{name}.txt").rename(args.out / "train" / f"{ours}.txt")
    else:
        take(args.sources, args.size, args.out)


if __name__ == "__main__":
    main()
