"""Raw results of a recipe, and the tables of its README written from them.

A recipe keeps its raw results beside its README as JSON lines (`results.jsonl`: one object per
measurement, sorted, so that two runs are easily compared) and has a `tables.py` whose
`tables(rows)` makes Markdown by name. Each table stands in the README between the markers of
`insert.py`.

    python recipes/data/record.py recipes/trim

writes them. With `--check` nothing is written, and a difference is an error: so a table that was
edited by hand is found, which a test does. `--rows FILE` takes the rows that one of a recipe's
scripts wrote first: they replace those of the same kind (`what`) and model.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))
from insert import insert

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """The rows of a file of JSON lines; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def key_of(row: Row, key: Sequence[str]) -> tuple[str, ...]:
    """What identifies a row."""
    return tuple(json.dumps(row.get(name)) for name in key)


def add(path: Path, rows: Iterable[Row], *, key: Sequence[str]) -> None:
    """Put rows into the file; one with the same values of `key` replaces that which is there."""
    have = {key_of(row, key): row for row in [*read(path), *rows]}
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) for row in have.values())
    path.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def take(path: Path, rows: Sequence[Row]) -> None:
    """Put rows into the file in place of all that are of the same `what` and `model`."""
    kind = ("what", "model")
    taken = {key_of(row, kind) for row in rows}
    kept = [row for row in read(path) if key_of(row, kind) not in taken]
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) for row in [*kept, *rows])
    path.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A Markdown table; the first `left` columns are text, the others numbers."""
    marks = ["---" if place < left else "---:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, marks, *rows])


def crossed(rows: Iterable[Row], down: str, across: str) -> str:
    """A table of counts: a line for each value of `down`, a column for each of `across`."""
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row[down], {})[row[across]] = row["value"]
    columns = list(dict.fromkeys(name for own in found.values() for name in own))
    cells = (
        (line, *(f"{own[name]:,}" if name in own else "–" for name in columns))
        for line, own in found.items()
    )
    return markdown(("", *columns), cells)


def tables_of(recipe: Path) -> dict[str, str]:
    """The tables that a recipe makes of its results."""
    spec = importlib.util.spec_from_file_location(f"tables_of_{recipe.name}", recipe / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, str] = module.tables(read(recipe / "results.jsonl"))
    return found


def written(readme: str, tables: dict[str, str]) -> str:
    """The README with these tables; ValueError where one has no markers."""
    for name, table in tables.items():
        readme = insert(readme, name, table)
    return readme


def main() -> int:
    """Write the tables of the recipes, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipes", nargs="+", type=Path, metavar="RECIPE")
    parser.add_argument(
        "--rows", nargs="+", type=Path, default=[], metavar="FILE", help="of the one RECIPE: new"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one differs")
    args = parser.parse_args()
    status = 0
    if args.rows:
        [recipe] = args.recipes
        take(recipe / "results.jsonl", [row for file in args.rows for row in read(file)])
    for recipe in args.recipes:
        readme = recipe / "README.md"
        text = readme.read_text(encoding="utf-8")
        new = written(text, tables_of(recipe))
        if new == text:
            continue
        if args.check:
            print(f"{readme} differs from its results.jsonl; run {parser.prog} {recipe}")
            status = 1
        else:
            readme.write_text(new, encoding="utf-8")
            print(f"{readme}: tables written")
    return status


if __name__ == "__main__":
    sys.exit(main())
