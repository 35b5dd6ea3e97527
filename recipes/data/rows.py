"""Rows of a recipe's `results.jsonl`: one line for each row of a table, its values by language.

    python recipes/data/rows.py measured.jsonl -o results.jsonl --trained runs/ablation \
        --table ist-14 60=transition-60 90=paper --command "recipes/ist/ablate.sh"

`measured.jsonl` is what `vocabshift evaluate --output` wrote. ROW=SUBJECT says which tokenizer is a
row; ROW=SUBJECT:hi,mr takes these languages only, and the same ROW may be given again for others.
A row of the table "made" says how all of it was made: command, size, seconds of training as
`vocabshift train --json` reported them beside each tokenizer, and the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
DIGITS = 6


def shown(row: Row) -> str:
    """One line: numbers of six significant digits, keys in order."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.{DIGITS}g}")
        if isinstance(value, dict):
            return {name: rounded(own) for name, own in value.items()}
        return value

    return json.dumps(rounded(row), ensure_ascii=False, sort_keys=True)


def machine() -> str:
    """Cores and processor, as the system names them."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    return f"{os.cpu_count()} cores of {processor}"


def made(table: str, command: str, size: str, seconds: float | None) -> Row:
    """How the rows of a table came to be."""
    known = {"command": command, "size": size, "machine": machine(), "seconds": seconds}
    return {"table": "made", "row": table, **{k: v for k, v in known.items() if v is not None}}


def put(path: Path, rows: Sequence[Row]) -> None:
    """Put rows into a file in place of all of the same tables, and of how these were made."""

    def table(row: Row) -> str:
        return str(row["row"] if row["table"] == "made" else row["table"])

    known = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    new = {table(row) for row in rows}
    kept = [line for line in known if table(json.loads(line)) not in new]
    text = "".join(f"{line}\n" for line in [*kept, *map(shown, rows)])
    path.write_text(text, encoding="utf-8")


def rows_of(table: str, specs: Iterable[str], values: dict[str, dict[str, float]]) -> list[Row]:
    """The rows of one table from ROW=SUBJECT[:LANG,LANG] words; KeyError for a subject unknown."""
    rows: dict[str, dict[str, float]] = {}
    for spec in specs:
        name, _, subject = spec.partition("=")
        subject, _, languages = subject.partition(":")
        own = values[subject]
        some = languages.split(",") if languages else own
        rows.setdefault(name, {}).update({label: own[label] for label in some})
    return [{"table": table, "row": name, "values": own} for name, own in rows.items()]


def trained_in(folder: Path | None, specs: Iterable[str]) -> float | None:
    """Seconds of training of these tokenizers together; None where nothing was reported."""
    if folder is None:
        return None
    names = {spec.partition("=")[2].partition(":")[0] for spec in specs}
    files = [file for name in names if (file := folder / f"{name}.json").exists()]
    phases = [json.loads(file.read_text(encoding="utf-8"))["phases"] for file in files]
    return float(round(sum(phase["seconds"] for own in phases for phase in own)))


def main() -> None:
    """Append the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--table", metavar="WORD", action="append", nargs="+", required=True)
    parser.add_argument("--metric", default="fertility")
    parser.add_argument("--command", required=True)
    parser.add_argument("--size", required=True)
    parser.add_argument("--trained", metavar="DIR", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--results", type=Path, help="a file that takes the rows too")
    args = parser.parse_args()
    values: dict[str, dict[str, float]] = {}
    for line in args.measured.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["metric"] == args.metric:
            values.setdefault(row["subject"], {})[row["language"]] = row["value"]
    rows: list[Row] = []
    for table, *specs in args.table:
        seconds = trained_in(args.trained, specs)
        rows += [*rows_of(table, specs, values), made(table, args.command, args.size, seconds)]
    with args.output.open("a", encoding="utf-8") as out:
        out.writelines(shown(row) + "\n" for row in rows)
    if args.results:
        put(args.results, rows)


if __name__ == "__main__":
    main()
