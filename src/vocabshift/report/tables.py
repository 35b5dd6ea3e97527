"""Tables of Results: languages down, subjects across, one table for each metric; and of pairs.

Renders for the terminal (rich) and as Markdown. Owns how a number is written, which values a loss
of text makes invalid, and the mean over languages. Knows nothing of how a value was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from vocabshift.errors import printable
from vocabshift.evaluation.metrics.metric import LOSS
from vocabshift.evaluation.metrics.registry import describe
from vocabshift.report.table_formats import escape_markdown
from vocabshift.results import WHOLE, Result, Results, averaged

if TYPE_CHECKING:
    from rich.table import Table

    from vocabshift.checks.vocabulary_report import VocabularyReport
    from vocabshift.evaluation.scoring.score_models import ScoreComparison
    from vocabshift.evaluation.significance import SubjectComparison

MEAN = "mean"
"""Label of the last row: the plain mean over languages."""

INVALID = "†"
"""After such a value; a note below the table says what it means."""

NOTE = f"{INVALID} not valid: the tokenizer loses text here (see {LOSS})"


def to_rich(results: Results, metric: str, *, intervals: bool = False) -> Table:
    """A rich table of one metric; with `intervals` each value shows half its 95 % interval.

    Subject and language names are shown as plain text: markup and control characters in them
    have no effect.
    """
    from rich.table import Table
    from rich.text import Text

    rows = _one_metric(results, metric)
    invalid = invalid_rows(results, metric)
    table = Table(title=Text(metric, style="bold"), title_justify="left")
    if invalid:
        table.caption, table.caption_justify = Text(NOTE), "left"
    table.add_column(describe(metric).place)
    for subject in rows.distinct("subject"):
        table.add_column(Text(printable(subject)), justify="right")
    n_languages = len(rows.distinct("language"))
    for number, (label, *cells) in enumerate(_lines(rows, invalid, intervals)):
        if number == n_languages:  # what follows the languages is their mean
            table.add_section()
        style = "bold" if number == n_languages else None
        table.add_row(Text(printable(label)), *map(Text, cells), style=style)
    return table


def to_markdown(results: Results, *, intervals: bool = False) -> str:
    """All metrics as Markdown tables, each under a heading of its own."""
    return "\n".join(
        _markdown(results, metric, intervals=intervals) for metric in results.distinct("metric")
    )


def invalid_rows(results: Results, metric: str) -> set[tuple[str, str]]:
    """(subject, language) of the rows of `metric` that a loss of text makes invalid.

    A figure over all languages is invalid where text of one of them is lost.
    """
    if not describe(metric).is_spoilt_by_loss:
        return set()
    lossy = {(row.subject, row.language) for row in results.where(metric=LOSS) if row.value > 0}
    lossy |= {(subject, WHOLE) for subject, _ in lossy}
    rows = results.where(metric=metric)
    return lossy & {(row.subject, row.language) for row in rows}


def _markdown(results: Results, metric: str, *, intervals: bool) -> str:
    rows = _one_metric(results, metric)
    invalid = invalid_rows(results, metric)
    subjects = rows.distinct("subject")
    lines = [
        [describe(metric).place, *subjects],
        ["---", *("---:" for _ in subjects)],
        *_lines(rows, invalid, intervals),
    ]
    body = ["| " + " | ".join(map(escape_markdown, cells)) + " |" for cells in lines]
    notes = ["", NOTE] if invalid else []
    return "\n".join([f"### {metric}", "", *body, *notes, ""])


def _one_metric(results: Results, metric: str) -> Results:
    rows = results.where(metric=metric)
    if not rows:
        known = ", ".join(results.distinct("metric")) or "none at all"
        raise ValueError(f"the results hold no metric {metric!r}; they hold {known}")
    return rows


def _lines(rows: Results, invalid: set[tuple[str, str]], intervals: bool) -> list[list[str]]:
    """Cells of each language, then the mean over languages where there are several."""
    subjects, languages = rows.distinct("subject"), rows.distinct("language")
    cell = {(row.subject, row.language): row for row in rows}
    metric = rows[0].metric
    known = describe(metric)
    decimals = known.decimals
    if decimals is None:
        decimals = 2 if max(abs(row.value) for row in rows) >= 1.5 else 3
    lines = []
    for language in languages:
        cells = []
        for subject in subjects:
            mark = INVALID if (subject, language) in invalid else ""
            cells.append(_value(cell.get((subject, language)), decimals, intervals) + mark)
        lines.append([language, *cells])
    labels = averaged(languages)
    if len(labels) > 1 and known.place == "language":
        marks = [INVALID if any((s, of) in invalid for of in labels) else "" for s in subjects]
        means = [_mean(rows.where(subject=s), labels, decimals) for s in subjects]
        lines.append([MEAN, *(mean + mark for mean, mark in zip(means, marks, strict=True))])
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
    values = [row.value for row in rows if row.language in languages]
    if len(values) < len(languages):
        return "–"
    return f"{sum(values) / len(values):.{decimals}f}"


def decimals(rows: Results) -> int:
    """Digits after the point that fit all values."""
    values = [row.value for row in rows if math.isfinite(row.value)]
    if all(value.is_integer() for value in map(float, values)):
        return 0
    most = max(map(abs, values))
    return 0 if most >= 1000 else 2 if most >= 1.5 else 3


def number(value: float, digits: int) -> str:
    """A value as it is printed."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else "–"


def mean_over(
    rows: Results, languages: Sequence[str], invalid: AbstractSet[tuple[str, str]] = frozenset()
) -> float | None:
    """Plain mean over all `languages` of one subject; None where one lacks or is invalid.

    Only natural languages enter it (`results.averaged`).
    """
    labels = set(averaged(languages))
    own = [row for row in rows if row.language in labels]
    if len(own) < len(labels) or any((row.subject, row.language) in invalid for row in own):
        return None
    return sum(row.value for row in own) / len(own)


def subject_comparisons(comparisons: Sequence[SubjectComparison], metric: str) -> Table:
    """A rich table of the pairs on one metric; names are shown as plain text."""
    from rich.table import Table
    from rich.text import Text

    title = Text(f"{metric}: pairs of tokenizers over languages", style="bold")
    table = Table("a", "b", title=title, title_justify="left")
    for column in ("languages", "a wins", "b wins", "difference", "effect", "p", "p (Holm)"):
        table.add_column(column, justify="right")
    for row in comparisons:
        if row.metric == metric:
            figures = (f"{row.mean_difference:+.3f}", f"{row.effect_size:+.2f}")
            wins = (str(row.n), str(row.wins_a), str(row.wins_b))
            p_values = (f"{row.p_value:.2g}", f"{row.p_holm:.2g}")
            table.add_row(Text(row.a), Text(row.b), *wins, *figures, *p_values)
    return table


def score_comparisons(comparisons: Sequence[ScoreComparison]) -> Table:
    """A rich table of the pairs; names are shown as plain text."""
    from rich.table import Table
    from rich.text import Text

    title = Text("bits per byte: pairs of models, by document", style="bold")
    table = Table("language", "a", "b", title=title, title_justify="left")
    for column in ("documents", "a - b", "95 % interval", "p", "p (Holm)"):
        table.add_column(column, justify="right")
    for row in comparisons:
        has_interval = row.ci_low is not None and row.ci_high is not None
        interval = f"{_bits(row.ci_low)} … {_bits(row.ci_high)}" if has_interval else "–"
        table.add_row(
            *map(Text, (row.language, row.a, row.b)),
            *(str(row.n), _bits(row.difference), interval),
            *(f"{row.p_value:.2g}", f"{row.p_holm:.2g}"),
        )
    return table


def _bits(change: float | None) -> str:
    """Four digits, or in powers of ten what they would show as zero."""
    if not change:
        return "0"
    return f"{change:+.1e}" if abs(change) < 5e-5 else f"{change:+.4f}"


def vocabulary_table(report: VocabularyReport) -> Table:
    """A vocabulary by script, for the terminal; the column of training text only where it is
    known."""
    from rich.table import Table
    from rich.text import Text

    has_text = any(row.training_share is not None for row in report.rows)
    title = Text("vocabulary by script", style="bold")
    table = Table("", title=title, title_justify="left")
    columns = ("tokens", "share", "superwords", "mean bytes")
    for column in (*columns, "share of text") if has_text else columns:
        table.add_column(column, justify="right")
    for row in report.rows:
        cells = [f"{row.tokens:,}", f"{row.share:.2%}", f"{row.superwords:,}"]
        cells.append(f"{row.mean_bytes:.1f}" if row.tokens else "–")
        if has_text:
            share = row.training_share
            cells.append("–" if share is None else f"{share:.2%}")
        table.add_row(Text(row.name), *cells)
    return table
