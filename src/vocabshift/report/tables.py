"""Tables of Results: languages down, subjects across, one table for each metric.

Renders from Results alone, for the terminal (rich) and as Markdown; and vocabularies by script.
Knows nothing of how a value was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vocabshift.report import escape
from vocabshift.report.metric_notes import ALL_LANGUAGES, IN_PLACE_OF_LANGUAGES
from vocabshift.results import Result, Results

if TYPE_CHECKING:
    from rich.table import Table

    from vocabshift.checks.vocabulary_report import VocabularyReport

MEAN = "mean"
"""Label of the last row: the plain mean over languages."""

LOSS = "loss_rate"
"""Share of lines that a tokenizer does not give back; above zero, some figures mean nothing."""

COMPRESSION = frozenset(
    {
        *("fertility", "bytes_per_token", "characters_per_token", "tokens_per_character"),
        *("sequence_reduction", "normalized_sequence_length", "premium", "gini"),
        *("normalized_variance", "coefficient_of_variation", "single_character_rate"),
        *("tokens_per_line", "word_fragmentation_rate", "renyi_entropy", "renyi_efficiency"),
        "bits_per_byte",
    }
)
"""Metrics, with those of frequency bins, whose value is not valid where text is lost."""

INVALID = "†"
"""Behind such a value; a note below the table says what it means."""

NOTE = f"{INVALID} not valid: the tokenizer loses text here (see {LOSS})"

FLATTERED = frozenset(
    {
        *("character_cut_rate", "grapheme_cut_rate", "syllable_cut_rate", "syllable_border_rate"),
        *("whole_syllable_rate", "code_switch_premium", "swap_change", "delete_change"),
        *("replace_change", "swap_locality", "delete_locality", "replace_locality"),
    }
)
"""Metrics by which a token for unknown text does well, for it says nothing: not valid either."""

CODE = "code"
"""The label of program text."""

FINE = frozenset({"bits_per_byte"})
"""Metrics whose third decimal matters."""

_COUNTS = frozenset({"vocab_size", "terminal_spanning_count"})


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
    table.add_column(IN_PLACE_OF_LANGUAGES.get(metric, "language"))
    for subject in rows.distinct("subject"):
        table.add_column(Text(escape.visible(subject)), justify="right")
    n_languages = len(rows.distinct("language"))
    for number, (label, *cells) in enumerate(_lines(rows, invalid, intervals)):
        if number == n_languages:  # what follows the languages is their mean
            table.add_section()
        style = "bold" if number == n_languages else None
        table.add_row(Text(escape.visible(label)), *map(Text, cells), style=style)
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
    if metric not in COMPRESSION | FLATTERED and not metric.startswith("fertility_bin_"):
        return set()
    lossy = {(row.subject, row.language) for row in results.where(metric=LOSS) if row.value > 0}
    lossy |= {(subject, ALL_LANGUAGES) for subject, _ in lossy}
    rows = results.where(metric=metric)
    return lossy & {(row.subject, row.language) for row in rows}


def stands_apart(label: str) -> bool:
    """Whether a label is no natural language, and so no part of a mean over languages.

    Code, text without a label, and code-switched pairs ("hi+en").
    """
    return label in (CODE, ALL_LANGUAGES) or "+" in label


def averaged(languages: Iterable[str]) -> list[str]:
    """The labels that a mean over languages is of: all of them where none is a language."""
    known = list(languages)
    return [label for label in known if not stands_apart(label)] or known


def _markdown(results: Results, metric: str, *, intervals: bool) -> str:
    rows = _one_metric(results, metric)
    invalid = invalid_rows(results, metric)
    subjects = rows.distinct("subject")
    lines = [
        [IN_PLACE_OF_LANGUAGES.get(metric, "language"), *subjects],
        ["---", *("---:" for _ in subjects)],
        *_lines(rows, invalid, intervals),
    ]
    body = ["| " + " | ".join(map(escape.markdown, cells)) + " |" for cells in lines]
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
    decimals = 2 if max(abs(row.value) for row in rows) >= 1.5 else 3
    decimals = 0 if metric in _COUNTS else 3 if metric in FINE else decimals
    lines = []
    for language in languages:
        cells = []
        for subject in subjects:
            mark = INVALID if (subject, language) in invalid else ""
            cells.append(_value(cell.get((subject, language)), decimals, intervals) + mark)
        lines.append([language, *cells])
    labels = averaged(languages)
    if len(labels) > 1 and metric not in IN_PLACE_OF_LANGUAGES:
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
