"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown

NAMES = {"all": "as it is", "en": "English", "en+code": "English, code", "en+de": "English, German"}
LABELS = {"en": "English", "de": "German", "code": "code"}


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    return {
        "steps": _steps(rows),
        "bits": _bits(rows),
        "tasks": _tasks(rows),
        "equal": _equal(rows),
        "orders": _orders(rows),
        "until": _until(rows),
    }


def _of(rows: Iterable[Row], what: str, **facts: Any) -> list[Row]:
    wanted = {"what": what, **facts}
    found = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    return sorted(found, key=lambda row: (list(NAMES).index(row["variant"]), -row.get("size", 0)))


def _steps(rows: list[Row]) -> str:
    header = ("for", "tokens", "parameters", "on disk", "peak memory", "bytes per token")
    speeds = ("reads tokens/s", "reads bytes/s", "writes tokens/s", "writes bytes/s")
    cells = [
        (
            *(NAMES[row["variant"]], f"{row['size']:,}", f"{row['parameters'] / 1e6:.1f} M"),
            *(f"{row['bytes_on_disk'] / 1e6:.0f} MB", f"{row['peak_memory'] / 1e6:,.0f} MB"),
            f"{row['bytes_per_token']:.2f}",
            *(f"{row['reads_tokens_per_second']:.0f}", f"{row['reads_bytes_per_second']:,.0f}"),
            *(f"{row['writes_tokens_per_second']:.1f}", f"{row['writes_bytes_per_second']:.1f}"),
        )
        for row in _of(rows, "step")
    ]
    return markdown((*header, *speeds), cells)


def _bits(rows: list[Row]) -> str:
    cells = []
    for step in _of(rows, "step"):
        line = [NAMES[step["variant"]], f"{step['size']:,}"]
        for label in LABELS:
            [row] = _of(
                rows, "bits", variant=step["variant"], size=step["size"], text=label, order=None
            )
            half = "" if row["low"] is None else f" ± {(row['high'] - row['low']) / 2:.3f}"
            line.append(f"{row['value']:.3f}{half}")
        cells.append(line)
    return markdown(("for", "tokens", *LABELS.values()), cells)


def _tasks(rows: list[Row]) -> str:
    names = list(dict.fromkeys(row["task"] for row in _of(rows, "task")))
    cells = []
    for step in _of(rows, "step"):
        own = {
            row["task"]: f"{row['value']:.2f} ± {(row['high'] - row['low']) / 2:.2f}"
            for row in _of(rows, "task", variant=step["variant"], size=step["size"])
        }
        if own:
            line = (NAMES[step["variant"]], f"{step['size']:,}")
            cells.append((*line, *(own.get(name, "–") for name in names)))
    return markdown(("for", "tokens", *(f"`{name}`" for name in names)), cells)


def _equal(rows: list[Row]) -> str:
    cells = [
        (
            *(NAMES[row["variant"]], f"{row['size']:,}", LABELS[row["text"]]),
            f"{row['unchanged']} of {row['of']}",
            f"{row['equal_states']} of {row['texts']}",
            f"{row['logit_difference']:.1e}" if row["texts"] else "–",
        )
        for label in LABELS
        for row in _of(rows, "equal", text=label)
    ]
    header = ("for", "tokens", "text", "same tokens", "same hidden states", "kept logits")
    return markdown(header, cells, left=3)


def _orders(rows: list[Row]) -> str:
    ordered = [
        row | {"order": "leaf-frequency"}
        for row in _of(rows, "bits", variant="en")
        if row["text"] == "en" and not row.get("order")
    ]
    ordered += [row for row in _of(rows, "bits") if row.get("order")]
    sizes = sorted({row["size"] for row in ordered}, reverse=True)
    values = {(row["order"], row["size"]): _with_lost(row) for row in ordered}
    names = dict.fromkeys(row["order"] for row in ordered)
    cells = [(f"`{name}`", *(values[name, size] for size in sizes)) for name in names]
    return markdown(("order", *(f"{size:,}" for size in sizes)), cells)


def _with_lost(row: Row) -> str:
    """The figure, and how many tokens became unreachable where any did."""
    lost = row.get("unreachable")
    return f"{row['value']:.3f}" + (f" ({lost:,})" if lost else "")


def _until(rows: list[Row]) -> str:
    cells = [
        (
            f"`--until {row['until']:.1%} --by {row['by']}`",
            f"{row['vocab_size']:,}",
            str(len(row["steps"]) - 1),
            f"{row['seconds']:.0f} s",
        )
        for row in sorted(_of(rows, "until"), key=lambda row: str(row["by"]))
    ]
    return markdown(("limit", "tokens kept", "vocabularies tried", "time"), cells)
