"""Mean fertility and spread of token totals, over all languages and over those of India.

    vocabshift evaluate … --parallel --metrics fertility tokens_per_line --output results.jsonl
    python recipes/indic_study/front.py results.jsonl --table front-64000 --size "100 MB" \\
        -o rows.jsonl

Writes the rows of `results.jsonl` here, of which `tables` makes Markdown. The spread is that of the
tokens of all lines, so that a text may be parallel as a whole and not by line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from vocabshift.evaluation.metrics.distribution import coefficient_of_variation, gini
from vocabshift.results import Results, read_results
from vocabshift.text.languages import find_language

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
from beside import how
from record import Row, markdown
from rows import made, put, shown

INDIAN = "Indian: "
_DIGITS = 4
_MEANS = ("fertility", "Gini", "CV")


def values_of(results: Results, subject: str, languages: Sequence[str]) -> list[float]:
    """Mean fertility, Gini, coefficient of variation."""
    totals = [
        row.value * row.n
        for label in languages
        for row in results.where(subject=subject, language=label, metric="tokens_per_line")
    ]
    fertility = mean(results.value(subject, label, "fertility") for label in languages)
    return [fertility, float(gini(totals)), float(coefficient_of_variation(totals))]


def is_indian(label: str) -> bool:
    """Whether a label is of a language of the Eighth Schedule."""
    language = find_language(label)
    return language is not None and language.is_scheduled


def rows_of(results: Results, table: str, labels: Sequence[str] = ()) -> list[Row]:
    """A row for each tokenizer, and one that counts the languages: those of `labels`, or all."""
    languages = results.where(metric="fertility").distinct("language")
    languages = [label for label in languages if not labels or label in labels]
    indian = [label for label in languages if is_indian(label)]
    counted = {"languages": len(languages), "of them Indian": len(indian)}
    rows: list[Row] = [{"table": f"{table}-languages", "row": "languages", "values": counted}]
    for subject in results.distinct("subject"):
        values = dict(zip(_MEANS, values_of(results, subject, languages), strict=True))
        of_indian = values_of(results, subject, indian)
        values |= {f"{INDIAN}{n}": v for n, v in zip(_MEANS, of_indian, strict=True)}
        for label in languages:
            if label not in indian:
                values[label] = results.value(subject, label, "fertility")
        rows.append({"table": table, "row": subject, "values": values})
    return rows


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Markdown by name, of the rows that `rows_of` makes."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["table"].startswith("front-"):
            found.setdefault(row["table"], {})[row["row"]] = row["values"]
    own = {row["row"]: row for row in rows if row["table"] == "made"}
    made_of = {}
    for table, of in found.items():
        if table.endswith("-languages"):
            continue
        counted = found[f"{table}-languages"]["languages"]
        title = f"{counted['languages']} languages, {counted['of them Indian']} of them Indian"
        if table.endswith("-declaration"):
            title = f"The Declaration of Human Rights: {title}"
        if table.endswith("-same"):
            title = f"FLORES in the Declaration's languages: {title}"
        text = f"### {title}\n\n{_table(of)}"
        made_of[table] = f"{text}\n\n*{how(own[table])}.*" if table in own else text
    return made_of


def _table(rows: dict[str, dict[str, float]]) -> str:
    """Four digits for means, which come first, and two for the fertility of one language."""
    columns = sorted({name for own in rows.values() for name in own}, key=_order)
    places = {name: _DIGITS if name.split(": ")[-1] in _MEANS else 2 for name in columns}
    cells = [
        [row, *(f"{own[name]:.{places[name]}f}" if name in own else "–" for name in columns)]
        for row, own in rows.items()
    ]
    return markdown(["", *columns], cells)


def _order(column: str) -> tuple[bool, str, int]:
    """Means of all languages, then those of a part of them, then languages."""
    *of, name = column.split(": ")
    is_mean = name in _MEANS
    return (
        not is_mean,
        of[0] if of else "" if is_mean else name,
        _MEANS.index(name) if is_mean else 0,
    )


def main() -> None:
    """Write the rows, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", metavar="RESULTS.jsonl", type=Path)
    parser.add_argument("--table", required=True, help="its name in README.md")
    parser.add_argument("--command", default="recipes/indic_study/front.sh")
    parser.add_argument("--size", required=True, help="as the table names it")
    parser.add_argument("--labels", nargs="*", default=[], help="languages; default: all")
    parser.add_argument("--results", type=Path, help="a file that takes the rows too")
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    results = read_results([args.measured])
    rows = rows_of(results, args.table, args.labels)
    measured = [
        row
        for row in results.where(metric="fertility").to_dicts()
        if not args.labels or row["language"] in args.labels
    ]
    rows.append(made(args.table, args.command, args.size, None, measured))
    text = "".join(f"{shown(row)}\n" for row in rows)
    args.out.write_text(text, encoding="utf-8")
    print("\n\n".join(tables([json.loads(line) for line in text.splitlines()]).values()))
    if args.results:
        put(args.results, rows)


if __name__ == "__main__":
    main()
