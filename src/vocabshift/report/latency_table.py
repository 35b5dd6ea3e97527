"""Latency as a table for the terminal: models under each language, a column for each metric.

Renders from Results alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vocabshift.report import escape
from vocabshift.results import Results

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = {  # heading and what a value is multiplied with, by metric
    "input_tokens": ("input tokens", 1),
    "ttft_seconds": ("first token, ms", 1e3),
    "output_tokens_per_second": ("tokens/s", 1),
    "output_bytes_per_second": ("bytes/s", 1),
    "output_characters_per_second": ("characters/s", 1),
    "text_bytes_per_second": ("bytes of text/s", 1),
    "peak_memory_bytes": ("memory, MB", 1e-6),
}


def latency_table(results: Results) -> Table:
    """A rich table of what `measure_latency` found: values with half the 95 % interval."""
    from rich.table import Table
    from rich.text import Text

    shown = [metric for metric in _COLUMNS if results.where(metric=metric)]
    table = Table(title=Text("latency", style="bold"), title_justify="left")
    for heading in ("language", "model"):
        table.add_column(heading)
    for metric in shown:
        table.add_column(_COLUMNS[metric][0], justify="right")
    for language in results.distinct("language"):
        for subject in results.distinct("subject"):
            rows = results.where(subject=subject, language=language)
            cells = [_cell(rows.where(metric=m), _COLUMNS[m][1]) for m in shown]
            names = (escape.visible(language), escape.visible(subject))
            table.add_row(*map(Text, (*names, *cells)))
        table.add_section()
    return table


def _cell(rows: Results, unit: float) -> str:
    """Three digits or more."""
    if not rows:
        return "–"
    [row] = rows
    value = row.value * unit
    decimals = max(0, 2 - len(f"{int(abs(value))}") + 1)
    text = f"{value:,.{decimals}f}"
    if row.ci_low is not None and row.ci_high is not None:
        text += f" ±{(row.ci_high - row.ci_low) / 2 * unit:,.{decimals}f}"
    return text
