"""A sheet of cells, and its form as Markdown, as LaTeX (booktabs) or as CSV, wide or long.

Owns how a number is written (`Cell.number`, for every format), which of a column is the best, and
the three syntaxes with what they escape: a name may come from an untrusted file, so it is shown and
never interpreted. Knows nothing of the shapes of tables.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from vocabshift.errors import printable

MISSING = "–"

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # after the end of a row, [ and * would belong to it
    "*": "{*}",
    "–": "--",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "†": r"$^\dagger$",
}


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
    mark: str = ""  # follows the number; such a value is compared with no other

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


_WIDE = 12
"""A LaTeX table of more columns is scaled to the width of the line."""

LONG_COLUMNS = ("table", "subject", "language", "metric", "value", "n", "ci_low", "ci_high")


def to_markdown(sheet: Sheet, *, intervals: bool = False) -> str:
    """A heading, the table (best values bold), and its notes."""

    def cell(own: Cell) -> str:
        half = own.half_width if intervals else None
        number = (f"**{own.number}**" if own.is_best else own.number) + own.mark
        return number if half is None else f"{number} ±{half}"

    lines = [
        [escape_markdown(sheet.corner), *map(escape_markdown, sheet.columns)],
        ["---", *("---:" for _ in sheet.columns)],
        *([escape_markdown(row.head), *map(cell, row.cells)] for row in sheet.rows),
    ]
    table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    notes = "".join(f"- {escape_markdown(note)}\n" for note in sheet.notes)
    return f"### {escape_markdown(sheet.title)}\n\n{table}" + (f"\n{notes}" if notes else "")


def to_latex(sheet: Sheet, *, intervals: bool = False) -> str:
    r"""A `table` float with booktabs rules; best values in \textbf. Also needs graphicx if wide."""

    def cell(own: Cell) -> str:
        number = escape_latex(own.number)
        half = own.half_width if intervals else None
        number = (rf"\textbf{{{number}}}" if own.is_best else number) + escape_latex(own.mark)
        return number if half is None else rf"{number} {{\tiny$\pm$\,{escape_latex(half)}}}"

    def line(cells: Sequence[str]) -> str:
        return "    " + " & ".join(cells) + r" \\" + "\n"

    body = "".join(
        ("    \\midrule\n" if row.begins_group else "")
        + line([escape_latex(row.head), *map(cell, row.cells)])
        for row in sheet.rows
    )
    tabular = (
        f"  \\begin{{tabular}}{{@{{}}l{'r' * len(sheet.columns)}@{{}}}}\n    \\toprule\n"
        + line([escape_latex(sheet.corner), *map(escape_latex, sheet.columns)])
        + f"    \\midrule\n{body}    \\bottomrule\n  \\end{{tabular}}"
    )
    is_wide = len(sheet.columns) > _WIDE
    needs = "booktabs, graphicx" if is_wide else "booktabs"
    if is_wide:
        tabular = f"  \\resizebox{{\\linewidth}}{{!}}{{%\n{tabular}%\n  }}"
    notes = "".join(f"\n  \\par\\footnotesize {escape_latex(note)}" for note in sheet.notes)
    return (
        f"% needs: {needs}\n\\begin{{table}}[t]\n  \\centering\n"
        f"  \\caption{{{escape_latex(sheet.title)}}}\n  \\label{{tab:{sheet.name}}}\n"
        f"  \\small\n{tabular}{notes}\n\\end{{table}}\n"
    )


def to_csv(sheets: Sequence[Sheet]) -> str:
    """Wide: the tables as they stand, one after another; numbers in full, empty where missing."""

    def rows(sheet: Sheet) -> list[list[str]]:
        head = [escape_csv(sheet.corner), *map(escape_csv, sheet.columns)]
        body = [[escape_csv(row.head), *(_full(c.value) for c in row.cells)] for row in sheet.rows]
        title = [[escape_csv(sheet.title)]] if len(sheets) > 1 else []
        return [*title, head, *body]

    return "\n".join(_written(rows(sheet)) for sheet in sheets)


def to_csv_long(sheets: Sequence[Sheet]) -> str:
    """Write the long form: one line for each value, with its interval; no line if missing."""
    rows = [
        [
            *map(escape_csv, (sheet.name, cell.subject, cell.language, cell.metric)),
            *(_full(cell.value), str(cell.n), _full(cell.low), _full(cell.high)),
        ]
        for sheet in sheets
        for row in sheet.rows
        for cell in row.cells
        if cell.value is not None
    ]
    return _written([list(LONG_COLUMNS), *rows])


def _full(value: float | None) -> str:
    return "" if value is None else repr(value)


def _written(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _each(render: Callable[..., str]) -> Callable[[Sequence[Sheet], bool], str]:
    return lambda sheets, intervals: "\n".join(render(s, intervals=intervals) for s in sheets)


FORMATS: dict[str, Callable[[Sequence[Sheet], bool], str]] = {
    "markdown": _each(to_markdown),
    "latex": _each(to_latex),
    "csv": lambda sheets, _: to_csv(sheets),
    "csv-long": lambda sheets, _: to_csv_long(sheets),
}
"""Writers by name: (sheets, whether intervals are shown) -> text. Long CSV always has them."""


def escape_markdown(text: str) -> str:
    """`text` for a cell or a sentence of GitHub's Markdown: no markup, no HTML, no new cell.

    An underscore between letters or digits stays, for it means nothing there: `mni_Mtei`.
    """
    escaped = re.sub(r"([\\`*\[\]|~$])", r"\\\1", printable(text))
    escaped = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_latex(text: str) -> str:
    """`text` as LaTeX prints it; no command in it is run."""
    return "".join(_LATEX.get(c, c) for c in printable(text))


_FORMULAS = tuple("=+-@＝＋－＠")  # and their full-width forms


def escape_csv(text: str) -> str:
    """`text` for a CSV cell that no spreadsheet takes for a formula: `'` stands before it then.

    Quoting commas and quotes is the csv module's.
    """
    shown = printable(text)
    return f"'{shown}" if shown.lstrip()[:1] in _FORMULAS else shown
