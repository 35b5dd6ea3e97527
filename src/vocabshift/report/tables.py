"""Tables of Results: languages down, subjects across, one table for each metric.

Renders from Results alone, for the terminal (rich) and as Markdown. Knows nothing of how a value
was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vocabshift.results import Result, Results

if TYPE_CHECKING:
    from rich.table import Table

MEAN = "mean"
"""Label of the last row: the plain mean over languages."""


def to_rich(results: Results, metric: str, *, intervals: bool = False) -> Table:
    """A rich table of one metric; with `intervals` each value shows half its 95 % interval.

    Subject and language names are shown as plain text: markup and control characters in them
    have no effect.
    """
    from rich.table import Table
    from rich.text import Text

    rows = _one_metric(results, metric)
    table = Table(title=Text(metric, style="bold"), title_justify="left")
    table.add_column("language")
    for subject in rows.distinct("subject"):
        table.add_column(Text(_visible(subject)), justify="right")
    n_languages = len(rows.distinct("language"))
    for number, (label, *cells) in enumerate(_lines(rows, intervals=intervals)):
        if number == n_languages:  # what follows the languages is their mean
            table.add_section()
        style = "bold" if number == n_languages else None
        table.add_row(Text(_visible(label)), *map(Text, cells), style=style)
    return table


def to_markdown(results: Results, *, intervals: bool = False) -> str:
    """All metrics as Markdown tables, each under a heading of its own."""
    return "\n".join(
        _markdown(_one_metric(results, metric), metric, intervals=intervals)
        for metric in results.distinct("metric")
    )


def _markdown(rows: Results, metric: str, *, intervals: bool) -> str:
    subjects = rows.distinct("subject")
    lines = [
        ["language", *subjects],
        ["---", *("---:" for _ in subjects)],
        *_lines(rows, intervals=intervals),
    ]
    body = ["| " + " | ".join(map(_markdown_cell, cells)) + " |" for cells in lines]
    return "\n".join([f"### {metric}", "", *body, ""])


def _one_metric(results: Results, metric: str) -> Results:
    rows = results.where(metric=metric)
    if not rows:
        known = ", ".join(results.distinct("metric")) or "none at all"
        raise ValueError(f"the results hold no metric {metric!r}; they hold {known}")
    return rows


def _lines(rows: Results, *, intervals: bool) -> list[list[str]]:
    """Cells of each language, then the mean over languages where there are several."""
    subjects, languages = rows.distinct("subject"), rows.distinct("language")
    cell = {(row.subject, row.language): row for row in rows}
    decimals = 2 if max(abs(row.value) for row in rows) >= 1.5 else 3
    lines = []
    for language in languages:
        of_language = [cell.get((subject, language)) for subject in subjects]
        lines.append([language, *(_value(row, decimals, intervals) for row in of_language)])
    if len(languages) > 1:
        lines.append([MEAN, *(_mean(rows.where(subject=s), languages, decimals) for s in subjects)])
    return lines


def _value(row: Result | None, decimals: int, intervals: bool) -> str:
    if row is None:
        return "–"
    text = f"{row.value:.{decimals}f}"
    if intervals and row.ci_low is not None and row.ci_high is not None:
        text += f" ±{(row.ci_high - row.ci_low) / 2:.{decimals}f}"
    return text


def _mean(rows: Results, languages: Sequence[str], decimals: int) -> str:
    """Mean over all languages; none for a subject that lacks one, as it would not compare."""
    if set(rows.distinct("language")) != set(languages):
        return "–"
    return f"{sum(row.value for row in rows) / len(rows):.{decimals}f}"


def _visible(label: str) -> str:
    """`label` with control and direction characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in label)


def _markdown_cell(text: str) -> str:
    return _visible(text).replace("\\", "\\\\").replace("|", "\\|")
