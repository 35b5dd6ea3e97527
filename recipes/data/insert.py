"""Put what a program wrote into a README, between markers, and touch nothing else of it.

    python recipes/data/insert.py recipes/ist/README.md runs/ist/ist-3.md runs/ist/ist-7.md

The file `ist-3.md` goes between the lines `<!-- ist-3 -->` and `<!-- /ist-3 -->`, its headings one
level lower.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path


def insert(text: str, name: str, content: str) -> str:
    """`text` with `content` between the markers of `name`; ValueError unless they stand once."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed) or begin in after or end in before:
        raise ValueError(f"the lines {begin.strip()} and {end.strip()} must stand there, once each")
    lowered = re.sub(r"^(#+ )", r"#\1", content.strip(), flags=re.MULTILINE)
    return f"{before}{begin}\n{lowered}\n\n{end}{after}"


def main() -> None:
    """Insert every file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readme", type=Path)
    parser.add_argument("tables", metavar="NAME.md", type=Path, nargs="+")
    args = parser.parse_args()
    text = args.readme.read_text(encoding="utf-8")
    for table in args.tables:
        try:
            text = insert(text, table.stem, table.read_text(encoding="utf-8"))
        except ValueError as error:
            parser.error(f"{args.readme}: {error}")
    args.readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
