"""A paper's printed figures next to ours, and where each of its tables stands.

One TOML file per paper: for every table what it shows, and either the recipe whose README has it or
the reason why there is none. `figures` are the printed numbers, row by row, in the order of
`columns`: labels of languages as our texts have them, where the two are the same language. `mark`
says how far the two sides may be compared.

A recipe's rows are those that `recipes/data/rows.py` writes. Differences are relative, paired over
the languages that both sides have, with a bootstrap over these languages; the same is computed from
the paper's figures, so that effects can be compared where values cannot.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown

HERE = Path(__file__).parent
MARKS = {
    "same": "same text and same method",
    "text": "same method, other text",
    "quantity": "another quantity",
}
NO_LANGUAGE = ("code",)
_DRAWS, _SEED = 10_000, 7
Entry = Mapping[str, Any]
Values = Mapping[str, Mapping[str, float]]
"""By row, then by column."""


def papers() -> dict[str, Entry]:
    """All papers, by the name of their file."""
    return {
        file.stem: tomllib.loads(file.read_text(encoding="utf-8"))
        for file in sorted(HERE.glob("*.toml"))
    }


def heading(number: str, entry: Entry) -> str:
    """The heading under which a table stands in a README."""
    named = f"Table {number}" if number.isdigit() else number
    return str(entry.get("heading", f"{entry['shows']} ({named})"))


def anchor(title: str) -> str:
    """The fragment that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def compare(entry: Entry) -> str:
    """How far the two sides may be compared."""
    return f"Compared with the paper: {MARKS[entry['mark']]}"


def figures(entry: Entry) -> dict[str, dict[str, float]]:
    """What the paper printed, by row and column."""
    columns = entry.get("columns", ())
    return {
        row: values if isinstance(values, dict) else dict(zip(columns, values, strict=True))
        for row, values in entry.get("figures", {}).items()
    }


def tables(name: str, rows: Iterable[Row]) -> dict[str, str]:
    """The tables of a paper that have rows ("ist-14"), its figures next to ours."""
    ours: dict[str, dict[str, Mapping[str, float]]] = {}
    made: dict[str, Row] = {}
    for row in rows:
        if row["table"] == "made":
            made[row["row"]] = row
        else:
            ours.setdefault(row["table"], {})[row["row"]] = row["values"]
    found = {}
    for number, entry in papers()[name]["tables"].items():
        marker = f"{name}-{number}".lower().replace(" ", "-")
        if marker in ours:
            how = _how(entry, made.get(marker))
            text = (effects if "base" in entry else by_column)(entry, ours[marker])
            found[marker] = f"### {heading(number, entry)}\n\n{text}\n\n{how}"
    return found


def by_column(entry: Entry, ours: Values) -> str:
    """A line for each column of the paper's table, ours and the paper's next to each other."""
    theirs = figures(entry)
    rows = _in_order([row for row in theirs if row in ours], ours)
    known = {column for own in ours.values() for column in own}
    lines = [column for column in entry["columns"] if column in known] or sorted(known)
    digits = entry.get("decimals", 2)
    head = [str(entry.get("down", "language"))]
    cells = [[line] for line in lines]
    means = [line for line in lines if line not in NO_LANGUAGE] if _has_mean(entry) else []
    last = ["mean"]
    for row in rows:
        for who, values in (("ours", ours.get(row)), ("paper", theirs.get(row))):
            if values is None:
                continue
            head.append(f"{row}: {who}")
            for own, line in zip(cells, lines, strict=True):
                own.append(_cell(values.get(line), digits))
            last.append(_mean([values.get(line) for line in means], digits))
    return markdown(head, [*cells, last] if means else cells)


def effects(entry: Entry, ours: Values) -> str:
    """A line for each row: the mean of both sides, and the difference from the row `base`.

    The paper's side is shown where at least one of its rows has all the languages of the means.
    """
    theirs = figures(entry)
    some = [column for column in entry["columns"] if any(column in own for own in ours.values())]
    shared = [column for column in some if column not in NO_LANGUAGE]
    sides = [("ours", ours, str(entry["base"]))]
    if shared and any(all(column in own for column in shared) for own in theirs.values()):
        sides.append(("paper", theirs, str(entry.get("paper_base", entry["base"]))))
    head = [str(entry.get("down", ""))]
    for who, _, base in sides:
        head += [f"{who}: mean", f"{who}, against {base}"]
    cells = []
    for row in _in_order([], ours, theirs if len(sides) > 1 else {}):
        line = [row]
        for _, side, base in sides:
            own = side.get(row, {})
            columns = [column for column in shared if column in own]
            line.append(_mean([own[column] for column in columns], entry.get("decimals", 3)))
            line.append("–" if row == base else difference(own, side.get(base, {}), columns))
        cells.append(line)
    inside = by_column(entry, ours)
    note = f"Means over {len(shared)} languages: {', '.join(shared)}."
    return (
        f"{markdown(head, cells)}\n\n{note}\n\n"
        f"<details><summary>By language</summary>\n\n{inside}\n\n</details>"
    )


def difference(one: Mapping[str, float], base: Mapping[str, float], columns: Sequence[str]) -> str:
    """Mean relative difference over the columns that both have, with its 95 % interval."""
    shifts = [one[column] / base[column] - 1 for column in columns if column in base]
    if not shifts:
        return "–"
    low, high = interval(shifts)
    return f"{fmean(shifts):+.2%} ({low:+.2%} to {high:+.2%})"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean: a percentile bootstrap, always with the same draws."""
    drawn = np.random.default_rng(_SEED).choice(np.asarray(values), (_DRAWS, len(values)))
    low, high = np.quantile(drawn.mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _in_order(first: Sequence[str], *more: Iterable[str]) -> list[str]:
    """Names of rows, each once; by size where all of them are numbers (of MB or of tokens)."""
    names = list(dict.fromkeys([*first, *(name for some in more for name in some)]))
    numbers = [name.removesuffix(" MB").replace(",", "") for name in names]
    if all(number.replace(".", "", 1).isdigit() for number in numbers):
        names.sort(key=lambda name: float(name.removesuffix(" MB").replace(",", "")))
    return names


def _has_mean(entry: Entry) -> bool:
    return bool(entry.get("mean", entry.get("down", "language") == "language"))


def _cell(value: float | str | None, digits: int) -> str:
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else value


def _mean(values: Sequence[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.{digits}f}" if known and len(known) == len(values) else "–"


def how(made: Row) -> str:
    """How our side was made; what was not recorded is left out."""
    size = re.sub(r"\d{5,}", lambda number: f"{int(number[0]):,}", made["size"])
    words = f"{size}, `{made['command']}`"
    if made.get("seconds") is not None:
        words += f", {made['seconds']:,.0f} s of training"
    return f"{words} on {made['machine']}" if "machine" in made else words


def compared(entry: Entry) -> str:
    """What may be compared, as a sentence."""
    words = compare(entry) if "mark" in entry else "The paper has no figures"
    if entry.get("mark") == "quantity":
        words += " ([errata](../../docs/errata.md))"
    return f"{words}; {entry['note']}." if entry.get("note") else f"{words}."


def _how(entry: Entry, made: Row | None) -> str:
    """What may be compared, and how our side was made."""
    return f"*{compared(entry)} {how(made)}.*" if made is not None else f"*{compared(entry)}*"
