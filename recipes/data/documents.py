"""Cut one text file into the files that it was joined from, so that their newlines are text.

    python recipes/data/documents.py code.txt code.sources.tsv -o code.jsonl

In a `.txt` a line is a document, and no newline is ever inside one: a tokenizer that is trained on
code as lines learns nothing of blank lines. The table names the first and the last line of every
file (columns `first_line` and `last_line`, counted from 1, both included).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def spans(table: Path) -> list[tuple[int, int]]:
    """(first, last) line of every file, in order; they must not overlap."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = [(int(row["first_line"]), int(row["last_line"])) for row in rows]
    after = 0
    for first, last in found:
        if not after < first <= last:
            raise ValueError(f"{table}: lines {first} to {last} do not follow line {after}")
        after = last
    return found


def documents(text: Path, table: Path) -> Iterator[str]:
    """The files, in order; what lies between them (a blank line) is in none."""
    with text.open(encoding="utf-8", newline="") as file:
        at = 0
        for first, last in spans(table):
            kept = []
            while at < last:
                line = file.readline()
                if not line:
                    raise ValueError(f"{text} ends at line {at}; {table} names line {last}")
                at += 1
                if at >= first:
                    kept.append(line)
            yield "".join(kept)


def main() -> None:
    """Write one JSON object a document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    aside = args.output.with_name(args.output.name + ".partial")
    count = 0
    with aside.open("w", encoding="utf-8", newline="\n") as out:
        for text in documents(args.text, args.sources):
            out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            count += 1
    aside.replace(args.output)
    print(f"{args.output}: {count:,} documents", file=sys.stderr)


if __name__ == "__main__":
    main()
