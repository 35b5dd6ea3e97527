"""Rows of a recipe's `results.jsonl`: one line for each row of a table, its values by language.

    python recipes/data/rows.py measured.jsonl -o results.jsonl --trained runs/ablation \
        --table ist-14 60=transition-60 90=paper --command "recipes/ist/ablate.sh"

`measured.jsonl` is what `vocabshift evaluate --output` wrote. ROW=SUBJECT says which tokenizer is a
row; ROW=SUBJECT:hi,mr takes these languages only, and the same ROW may be given again for others.
A row of the table "made" says how all of it was made: command, size, seconds of training as
`vocabshift train --json` reported them beside each tokenizer, and the machine. And of what it was
made: `texts_sha256` stands for the SHA-256 of every text, `tokenizers_sha256` for that of every
tokenizer, in the rows of `measured.jsonl` that the table takes. It is the SHA-256 of the sorted
lines "LABEL SHA256". For a table that takes all rows of the metric:

    jq -r 'select(.metric == "fertility") | [.language, .text_sha256] | join(" ")' measured.jsonl |
      LC_ALL=C sort -u | sha256sum

and with `.subject` and `.tokenizer_sha256` the tokenizers. With --made that row alone is
written, to a file of its own: how everything in `measured.jsonl` was made, and of which texts and
tokenizers, each with its SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
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


def sources(measured: Iterable[Row]) -> Row:
    """`texts_sha256` and `tokenizers_sha256` of rows that `vocabshift evaluate` wrote, as the head
    of this file says; left out where no row has a checksum."""
    rows = list(measured)
    found = {}
    for name, label in (("text", "language"), ("tokenizer", "subject")):
        known = {(row[label], own) for row in rows if (own := row.get(f"{name}_sha256"))}
        lines = sorted(f"{of} {own}\n".encode() for of, own in known)
        if lines:
            found[f"{name}s_sha256"] = hashlib.sha256(b"".join(lines)).hexdigest()
    return found


def by_label(texts: Iterable[tuple[str | None, str]]) -> dict[str, list[str]]:
    """Documents as `Corpus.texts` gives them, by label."""
    found: dict[str, list[str]] = {}
    for label, text in texts:
        found.setdefault(str(label), []).append(text)
    return found


def sources_of(texts: Mapping[str, Iterable[str]], tokenizers: Mapping[str, Any]) -> Row:
    """The same of lines by label and of loaded tokenizers by name, of any kind."""
    from vocabshift.evaluation.lines.subject import checksum_of
    from vocabshift.results import sha256_of

    read = [{"language": name, "text_sha256": sha256_of(own)} for name, own in texts.items()]
    loaded = [
        {"subject": name, "tokenizer_sha256": checksum_of(own)} for name, own in tokenizers.items()
    ]
    return sources([*read, *loaded])


def made(
    table: str, command: str, size: str, seconds: float | None, measured: Iterable[Row] = ()
) -> Row:
    """How the rows of a table came to be, and of which of `measured`, where they are at hand."""
    known = {"command": command, "size": size, "machine": machine(), "seconds": seconds}
    known |= sources(measured)
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


def parts(spec: str) -> tuple[str, str, list[str]]:
    """Row, subject and languages of ROW=SUBJECT[:LANG,LANG]; no languages stand for all."""
    name, _, subject = spec.partition("=")
    subject, _, languages = subject.partition(":")
    return name, subject, languages.split(",") if languages else []


def used(specs: Iterable[str], measured: Iterable[Row]) -> list[Row]:
    """The rows of `measured` that `rows_of` takes the values of."""
    rows = list(measured)
    found = []
    for _, subject, languages in map(parts, specs):
        own = [row for row in rows if row["subject"] == subject]
        found += [row for row in own if not languages or row["language"] in languages]
    return found


def rows_of(table: str, specs: Iterable[str], values: dict[str, dict[str, float]]) -> list[Row]:
    """The rows of one table from ROW=SUBJECT[:LANG,LANG] words; KeyError for a subject unknown."""
    rows: dict[str, dict[str, float]] = {}
    for name, subject, languages in map(parts, specs):
        own = values[subject]
        rows.setdefault(name, {}).update({label: own[label] for label in languages or own})
    return [{"table": table, "row": name, "values": own} for name, own in rows.items()]


def trained_in(folder: Path | None, specs: Iterable[str]) -> float | None:
    """Seconds of training of these tokenizers together; None where nothing was reported."""
    if folder is None:
        return None
    names = {subject for _, subject, _ in map(parts, specs)}
    files = [file for name in names if (file := folder / f"{name}.json").exists()]
    phases = [json.loads(file.read_text(encoding="utf-8"))["phases"] for file in files]
    return float(round(sum(phase["seconds"] for own in phases for phase in own)))


def main() -> None:
    """Append the rows; with --made write the one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--table", metavar="WORD", action="append", nargs="+", default=[])
    parser.add_argument("--made", action="store_true", help="no table, but how all was made")
    parser.add_argument("--metric", default="fertility")
    parser.add_argument("--command", required=True)
    parser.add_argument("--size", required=True)
    parser.add_argument("--trained", metavar="DIR", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--results", type=Path, help="a file that takes the rows too")
    args = parser.parse_args()
    if args.made == bool(args.table):
        parser.error("give --table, or --made")
    lines = args.measured.read_text(encoding="utf-8").splitlines()
    measured = [row for line in lines if (row := json.loads(line))["metric"] == args.metric]
    if args.made:
        rows = list(map(json.loads, lines))
        specs = [f"={subject}" for subject in {row["subject"] for row in rows}]
        how = made("all", args.command, args.size, trained_in(args.trained, specs))
        how["texts"] = {row["language"]: row["text_sha256"] for row in rows}
        how["tokenizers"] = {row["subject"]: row["tokenizer_sha256"] for row in rows}
        args.output.write_text(f"{shown(how)}\n", encoding="utf-8")
        return
    values: dict[str, dict[str, float]] = {}
    for row in measured:
        values.setdefault(row["subject"], {})[row["language"]] = row["value"]
    rows: list[Row] = []
    for table, *specs in args.table:
        seconds = trained_in(args.trained, specs)
        how = made(table, args.command, args.size, seconds, used(specs, measured))
        rows += [*rows_of(table, specs, values), how]
    with args.output.open("a", encoding="utf-8") as out:
        out.writelines(shown(row) + "\n" for row in rows)
    if args.results:
        put(args.results, rows)


if __name__ == "__main__":
    main()
