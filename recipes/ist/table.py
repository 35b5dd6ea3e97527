"""What `vocabshift tables` does not show of an experiment: means against a base, time and memory.

    vocabshift evaluate all no-superwords --text hi=hi.txt code=a.py --output results.jsonl
    python recipes/ist/table.py results.jsonl --against all > tables.md
    python recipes/ist/table.py --phases ist=train.json

With --against: a table for each metric, tokenizers down, and at its end what a tokenizer's mean
over the languages gains or loses against that one's. With --phases: time and peak memory from what
`vocabshift train --json` printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from vocabshift.report.paper_tables import paper_tables
from vocabshift.report.table_formats import Cell, Row, Sheet, escape_markdown, to_markdown
from vocabshift.report.tables import MEAN
from vocabshift.results import read_results


def with_difference(sheet: Sheet, against: str) -> Sheet:
    """The sheet with a column more: the mean of each row against that of the subject `against`."""
    place = sheet.columns.index(MEAN) if MEAN in sheet.columns else 0
    means = {row.head: row.cells[place] for row in sheet.rows}
    base = means[against].value

    def difference(own: Cell) -> Cell:
        value = None if own.value is None or base is None else own.value / base - 1
        return replace(own, value=value, low=None, is_percent=True, decimals=2, is_best=False)

    rows = [Row(row.head, (*row.cells, difference(means[row.head]))) for row in sheet.rows]
    return replace(sheet, columns=(*sheet.columns, f"{MEAN}, against {against}"), rows=tuple(rows))


def phases(reports: Iterable[str]) -> str:
    """Time and memory from NAME=FILE arguments, as Markdown."""
    lines = [
        "### Time and memory of training\n",
        "| tokenizer | phase | seconds | peak memory of the process, MB |",
        "| --- | --- | ---: | ---: |",
    ]
    for named in reports:
        name, _, path = named.partition("=")
        report = json.loads(Path(path).read_text(encoding="utf-8"))
        for phase in report["phases"]:
            cells = (escape_markdown(name), escape_markdown(phase["name"]))
            peak = f"{phase['peak_rss_bytes'] / 1e6:,.0f}"
            lines.append(f"| {' | '.join(cells)} | {phase['seconds']:.1f} | {peak} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", metavar="RESULTS.jsonl", type=Path, nargs="*")
    parser.add_argument("--phases", metavar="NAME=TRAIN.json", nargs="+", default=[])
    parser.add_argument("--against", metavar="SUBJECT", help="compare means with this tokenizer's")
    args = parser.parse_args()
    if (args.against is None) == bool(args.results) or not (args.results or args.phases):
        parser.error("give a RESULTS.jsonl together with --against, or --phases, or all of them")
    results = read_results(args.results)
    if args.against is not None and args.against not in results.distinct("subject"):
        known = ", ".join(results.distinct("subject"))
        parser.error(f"--against {args.against}: the results hold {known}")
    if results:
        for sheet in paper_tables(results, "subjects"):
            print(to_markdown(with_difference(sheet, args.against)))
    if args.phases:
        print(phases(args.phases))


if __name__ == "__main__":
    main()
