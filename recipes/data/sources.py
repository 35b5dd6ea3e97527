"""The sources of program text as `vocabshift card --sources` reads them: by repository, in bytes.

    python recipes/data/sources.py code.txt code.sources.tsv -o code.tsv

`code.sources.tsv` names every file of `code.txt` with its repository and licence; all of them are
permissive or MPL-2.0, which the shared data call open. The other languages' tables can be read as
they are.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

OPEN = ("Apache-2.0", "MIT", "MPL-2.0", "BSD")


def sources(text: Path, table: Path) -> list[tuple[str, int, str, str]]:
    """(repository, bytes, class, licence), the largest first."""
    lines = text.read_bytes().splitlines(keepends=True)
    sizes: dict[tuple[str, str], int] = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            own = lines[int(row["first_line"]) - 1 : int(row["last_line"])]
            key = (row["repo"], row["license"])
            sizes[key] = sizes.get(key, 0) + sum(map(len, own))
    rows = [
        (repo, size, "open" if licence.startswith(OPEN) else "unknown", licence)
        for (repo, licence), size in sizes.items()
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    rows = sources(args.text, args.sources)
    table = ["source\tbytes\tclass\tlicence", *("\t".join(map(str, row)) for row in rows)]
    args.output.write_text("\n".join(table) + "\n", encoding="utf-8")
    print(f"{args.output}: {len(rows)} repositories", file=sys.stderr)


if __name__ == "__main__":
    main()
