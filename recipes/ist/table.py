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


def rows(results: Results, metric: str, against: str | None = None) -> list[list[str]]:
    """Head and body of the table of one metric; `against` names a subject to compare means with."""
    of_metric = results.where(metric=metric)
    value = {(row.subject, row.language): row.value for row in of_metric}
    found = of_metric.distinct("language")
    languages = sorted(name for name in found if name != APART)
    decimals = 2 if max(value.values()) >= 1.5 else 3

    def cells(values: Iterable[float | None]) -> list[str]:
        return ["–" if number is None else f"{number:.{decimals}f}" for number in values]

    head = ["tokenizer", *languages, "mean", *([APART] if APART in found else [])]
    means = {
        subject: mean([value.get((subject, language)) for language in languages])
        for subject in of_metric.distinct("subject")
    }
    table = [head if against is None else [*head, f"mean, against {against}"]]
    for subject, own_mean in means.items():
        own = [value.get((subject, language)) for language in languages]
        behind = [value.get((subject, APART))] if APART in found else []
        table.append([subject, *cells([*own, own_mean, *behind])])
        if against is not None:
            base = means[against]
            is_known = own_mean is not None and base is not None
            table[-1].append(f"{own_mean / base - 1:+.2%}" if is_known else "–")
    return table


def mean(values: list[float | None]) -> float | None:
    """The plain mean; None where a value is missing, for it would not compare with others."""
    known = [number for number in values if number is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


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
    parser.add_argument("--against", metavar="SUBJECT", help="compare means with this tokenizer's")
    args = parser.parse_args()
    results = Results(
        row for path in args.results for row in Results.from_jsonl(path.read_text(encoding="utf-8"))
    )
    if not results and not args.phases:
        parser.error("there is nothing to show; give a RESULTS.jsonl or --phases")
    if args.against is not None and args.against not in results.distinct("subject"):
        known = ", ".join(results.distinct("subject"))
        parser.error(f"--against {args.against}: the results hold {known}")
    for metric in results.distinct("metric"):
        print(f"### {metric}\n\n{to_markdown(rows(results, metric, args.against))}")
    if args.phases:
        print(f"### time and memory of training\n\n{to_markdown(phases(args.phases))}")


if __name__ == "__main__":
    main()
