"""Tables of an experiment as Markdown: one row for each tokenizer, one column for each language.

    vocabshift evaluate ist llama3 --text hi=hi.txt code=a.py --output results.jsonl
    python recipes/ist/table.py results.jsonl > tables.md
    python recipes/ist/table.py --phases ist=train.json

Reads the rows that `vocabshift evaluate --output` writes, and nothing else. The mean is that over
the languages; program text stands behind it, on its own. With --phases: time and peak memory from
what `vocabshift train --json` printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from vocabshift.results import Results

APART = "code"
"""Language that is no natural language and stays out of the mean."""


def rows(results: Results, metric: str) -> list[list[str]]:
    """Head and body of the table of one metric."""
    of_metric = results.where(metric=metric)
    value = {(row.subject, row.language): row.value for row in of_metric}
    found = of_metric.distinct("language")
    languages = sorted(name for name in found if name != APART)
    decimals = 2 if max(value.values()) >= 1.5 else 3

    def cells(values: Iterable[float | None]) -> list[str]:
        return ["–" if number is None else f"{number:.{decimals}f}" for number in values]

    table = [["tokenizer", *languages, "mean", *([APART] if APART in found else [])]]
    for subject in of_metric.distinct("subject"):
        own = [value.get((subject, language)) for language in languages]
        known = [number for number in own if number is not None]
        # A mean over other languages than the next row's would not compare.
        mean = sum(known) / len(known) if known and len(known) == len(own) else None
        behind = [value.get((subject, APART))] if APART in found else []
        table.append([subject, *cells([*own, mean, *behind])])
    return table


def phases(reports: Iterable[str]) -> list[list[str]]:
    """Head and body of the table of time and memory, from NAME=FILE arguments."""
    table = [["tokenizer", "phase", "seconds", "peak memory of the process, MB"]]
    for named in reports:
        name, _, path = named.partition("=")
        report = json.loads(Path(path).read_text(encoding="utf-8"))
        for phase in report["phases"]:
            peak = f"{phase['peak_rss_bytes'] / 1e6:,.0f}"
            table.append([name, phase["name"], f"{phase['seconds']:.1f}", peak])
    return table


def to_markdown(table: list[list[str]]) -> str:
    """The first row is the head; numbers stand at the right of their columns."""
    head, *body = ([cell.replace("|", r"\|") for cell in row] for row in table)
    is_words = [any(cell[0].isalpha() for cell in column) for column in zip(*body, strict=True)]
    lines = [head, ["---" if words else "---:" for words in is_words], *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", metavar="RESULTS.jsonl", type=Path, nargs="*")
    parser.add_argument("--phases", metavar="NAME=TRAIN.json", nargs="+", default=[])
    args = parser.parse_args()
    results = Results(
        row for path in args.results for row in Results.from_jsonl(path.read_text(encoding="utf-8"))
    )
    if not results and not args.phases:
        parser.error("there is nothing to show; give a RESULTS.jsonl or --phases")
    for metric in results.distinct("metric"):
        print(f"### {metric}\n\n{to_markdown(rows(results, metric))}")
    if args.phases:
        print(f"### time and memory of training\n\n{to_markdown(phases(args.phases))}")


if __name__ == "__main__":
    main()
