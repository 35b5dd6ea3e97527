"""The tables of the README, from the rows of paper.py.

    python recipes/continued_bpe/tables.py runs/continued_bpe/tables.jsonl

prints them; `recipes/data/record.py` writes them into the README.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
import beside
from record import Row, markdown, read

NAME = "continued_bpe"
Values = dict[str, dict[str, float]]
BY_LANGUAGE = ("13", "15", "17", "Figure 12", "Figure 13")
SCRIPTS = {"Latn": ("de", "en", "et"), "Arab": ("ks_Arab", "sd_Arab", "ur")}
"""Of our languages; all others are the paper's "Other"."""
OWN = {
    "repaired": ("Continued BPE against the naive extension, pre-tokenizer repaired", 2),
    "lifted": ("Pre-tokenizer kept and repaired: bytes per token, means", 3),
    "lifted-by-language": ("Pre-tokenizer kept and repaired: Llama-3 with 16,000 tokens", 3),
    "ceilings": ("The ceiling: bytes per pre-token", 3),
    "ran-out": ("Llama-3: tokens found of 32,000 before the text has no pairs left", 3),
    "unchanged": ("Lines that the repair changes", 0),
    "orders": ("Pruning by every order", 4),
    "together": ("One extension of Llama-3 for all, and alone", 3),
}
"""Headings of our own tables, and their decimals."""


def tables(rows: Iterable[Row]) -> dict[str, str]:
    """All that have rows, by name."""
    rows = list(rows)
    rows += by_id(rows)
    ours: dict[str, Values] = {}
    for row in rows:
        if row["table"] != "made":
            ours.setdefault(row["table"], {})[row["row"]] = row["values"]
    made = {row["row"]: row for row in rows if row["table"] == "made"}
    entries = {
        f"{NAME}-{number}".lower().replace(" ", "-"): (number, entry)
        for number, entry in beside.papers()[NAME]["tables"].items()
    }
    # What has no printed figures, or lines "hi +1000", is shown here, the rest as in other recipes.
    own = {name for name, (number, entry) in entries.items() if is_own(number, entry)}
    found = beside.tables(NAME, [row for row in rows if row["table"] not in own])
    for name in own & ours.keys():
        number, entry = entries[name]
        if number in BY_LANGUAGE:
            text = by_language(entry, ours[name])
        else:
            text = plain(ours[name], entry["decimals"], entry["down"])
        found[name] = under(number, entry, text, made.get(name))
    if f"{NAME}-13" in ours:
        (number, entry), gains = entries[f"{NAME}-2"], ours[f"{NAME}-13"]
        text = by_script(gains, beside.figures(entries[f"{NAME}-13"][1]), beside.figures(entry))
        found[f"{NAME}-2"] = under(number, entry, text, made.get(f"{NAME}-13"))
    for name, (title, digits) in OWN.items():
        if name in ours:
            how = f"\n\n*{beside.how(made[name])}.*" if name in made else ""
            found[name] = f"### {title}\n\n{plain(ours[name], digits)}{how}"
    return found


def by_id(rows: Sequence[Row]) -> list[Row]:
    """Of Table 4 what depends on no text: the unreachable tokens of Llama-3, pruned by id."""
    found: list[Row] = []
    for row in rows:
        if row["table"] == f"{NAME}-4" and row["row"] in ("ID", "ID (L*)"):
            left = {
                line.removeprefix("unreachable "): value
                for line, value in row["values"].items()
                if line.startswith("unreachable ")
            }
            found.append({**row, "table": f"{NAME}-4-by-id", "values": left})
        elif row["table"] == "made" and row["row"] == f"{NAME}-4":
            found.append({**row, "row": f"{NAME}-4-by-id", "size": "Llama-3"})
    return found


def is_own(number: str, entry: Mapping[str, Any]) -> bool:
    """Whether a table of the paper's is shown by this program."""
    return number in BY_LANGUAGE or "figures" not in entry


def under(number: str, entry: Mapping[str, Any], text: str, made: Row | None) -> str:
    """A table of the paper's with its heading, and what may be compared."""
    how = beside.compare(entry) if "mark" in entry else "The paper has no figures"
    note = f"; {entry['note']}" if "note" in entry else ""
    last = f" {beside.how(made)}." if made else ""
    return f"### {beside.heading(number, entry)}\n\n{text}\n\n*{how}{note}.{last}*"


def plain(columns: Values, digits: int, down: str = "") -> str:
    """A line for each name, by name, numbers in names by size; means last."""
    names = {line for own in columns.values() for line in own}
    lines = sorted(names, key=lambda line: (line.startswith("mean "), by_number(line)))
    body = [[line, *(cell(own.get(line), digits) for own in columns.values())] for line in lines]
    return markdown([down, *columns], body)


def by_number(line: str) -> list[str | float]:
    """Words and numbers by turns, to sort by."""
    parts = re.split(r"(\d+(?:\.\d+)?)", line)
    return [float(part) if i % 2 else part for i, part in enumerate(parts)]


def cell(value: float | None, digits: int) -> str:
    """A number; an en dash of none."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"


def by_language(entry: Mapping[str, Any], ours: Values) -> str:
    """Lines "hi +1000": means by their last words above, all of them folded below.

    A mean is over the languages that both sides have, or that ours has where the paper printed
    none.
    """
    theirs, digits = beside.figures(entry), entry["decimals"]
    known = list(dict.fromkeys(line for own in ours.values() for line in own))
    known.sort(key=lambda line: (line.split()[0], abs(int(line.split()[1]))))
    sizes = sorted({line.split()[1] for line in known}, key=lambda size: abs(int(size)))
    head, columns = [entry["down"].split(",")[-1].strip()], [sizes]
    for name, own in ours.items():
        other = theirs.get(name, own)
        shared = [[line for line in own if line.split()[1] == n and line in other] for n in sizes]
        head.append(f"{name}: ours" if theirs else name)
        columns.append([mean([own[line] for line in lines], digits) for lines in shared])
        if name in theirs:
            head += ["paper", "languages"]
            columns.append([mean([other[line] for line in lines], digits) for lines in shared])
            columns.append([f"{len(lines)}" for lines in shared])
    if theirs:
        inside = beside.by_column({**entry, "columns": known, "figures": theirs}, ours)
    else:
        inside = plain(ours, digits)
    return (
        f"{markdown(head, zip(*columns, strict=True))}\n\n"
        f"<details><summary>By language</summary>\n\n{inside}\n\n</details>"
    )


def mean(values: Sequence[float], digits: int) -> str:
    """The mean; an en dash of no values."""
    return cell(float(fmean(values)) if values else None, digits)


def by_script(gains: Values, theirs: Values, printed: Values) -> str:
    """Table 2: means over all sizes; the paper's over the languages of both, and as printed."""
    found = []
    for script in (*SCRIPTS, "Other"):
        for base, of_base in gains.items():
            own = {line: value for line, value in of_base.items() if script_of(line) == script}
            shared = [line for line in own if line in theirs.get(base, {})]
            sides = [
                [*own.values()],
                [own[line] for line in shared],
                [theirs[base][line] for line in shared],
                [printed[base][script]] if base in printed else [],
            ]
            if own:
                cells = [mean(side, 1) for side in sides]
                labels = [
                    " ".join(sorted({language(line) for line in some})) for some in (own, shared)
                ]
                found.append([f"{script}: {base}", *cells, *labels])
    head = ["script, base", "ours", "ours, languages of both", "paper, languages of both", "paper"]
    return markdown([*head, "our languages", "those of both"], found)


def language(line: str) -> str:
    """Of "hi +1000"."""
    return line.split(maxsplit=1)[0]


def script_of(line: str) -> str:
    """The paper's group of a line "hi +1000"."""
    return next((name for name, own in SCRIPTS.items() if language(line) in own), "Other")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", metavar="JSONL", type=Path)
    rows = read(parser.parse_args().rows)
    if not rows:
        parser.error("there are no rows; run paper.py first")
    print("\n\n".join(tables(rows).values()))


if __name__ == "__main__":
    main()
