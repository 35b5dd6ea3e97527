"""A table as a value: heads, cells and notes, before anybody wrote it as Markdown, LaTeX or CSV.

Owns how a number is written (`Cell.number`, for every format) and which of a column is the best.
Knows nothing of the shapes of tables nor of markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

MISSING = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table, and what it is a value of; `value` is None where there is none."""

    subject: str
    language: str  # label of one, or of what several were brought together under
    metric: str
    value: float | None
    n: int = 0
    low: float | None = None  # 95 % interval
    high: float | None = None
    decimals: int = 2
    is_percent: bool = False  # a share, written in per cent
    is_best: bool = False
    mark: str = ""  # stands behind the number; such a value is compared with no other

    @property
    def number(self) -> str:
        """The value as it is written."""
        return MISSING if self.value is None else self._written(self.value)

    @property
    def half_width(self) -> str | None:
        """Half the interval as it is written after ±, where there is one."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return self._written((self.high - self.low) / 2)

    def _written(self, value: float) -> str:
        text = f"{value * 100 if self.is_percent else value:,.{self.decimals}f}"
        return f"{text}%" if self.is_percent else text


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its head, and a cell for each column."""

    head: str
    cells: tuple[Cell, ...]
    begins_group: bool = False  # a line is drawn above it


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table. Heads, title and notes are plain text; whoever writes them escapes them."""

    name: str  # letters, digits and hyphens
    title: str
    corner: str  # head of the heads of the rows
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def decimals_for(values: Iterable[float | None]) -> int:
    """2 for values around one and above, 3 for shares (three digits are seen), 0 for counts."""
    known = [abs(value) for value in values if value is not None]
    if known and max(known) >= 1000 and all(float(value).is_integer() for value in known):
        return 0
    return 2 if known and max(known) >= 1.5 else 3


def mark_best(cells: Sequence[Cell], better: int) -> list[Cell]:
    """The cells, the best of them marked: all that print the same number as the best.

    `cells` are the values of one metric on one text by several subjects; `better` is 1 where
    higher is better, -1 where lower is, 0 where neither. None is marked where there is nothing to
    compare.
    """
    known = [cell for cell in cells if cell.value is not None and not cell.mark]
    if not better or len(known) < 2:
        return list(cells)
    best = max(known, key=lambda cell: better * (cell.value or 0.0)).number
    return [
        replace(cell, is_best=cell.value is not None and not cell.mark and cell.number == best)
        for cell in cells
    ]
