"""What was measured on language models, as tables: latency, scores on tasks, glitch tokens.

Owns the papers' numbers (published_scores.jsonl: each with its source, as shares, half a 95 %
interval if the paper gives one) and their place next to ours. Renders from Results alone, and a
glitch report from the plain values that `--json` has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import printable
from vocabshift.report.table_formats import escape_markdown
from vocabshift.report.tables import MEAN
from vocabshift.results import Result, Results

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
            cells = [_latency_cell(rows.where(metric=m), _COLUMNS[m][1]) for m in shown]
            names = (printable(language), printable(subject))
            table.add_row(*map(Text, (*names, *cells)))
        table.add_section()
    return table


def _latency_cell(rows: Results, unit: float) -> str:
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


_ENGLISH = "en"  # no part of the mean over Indian languages


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """A number of a paper."""

    source: str
    subject: str
    task: str
    language: str  # "mean": over the languages of the task, English left out
    metric: str
    value: float
    half_width: float | None = None

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)


@cache
def published_scores() -> tuple[PublishedScore, ...]:
    """All numbers that the package knows."""
    file = Path(__file__).with_name("published_scores.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(PublishedScore(**json.loads(line)) for line in lines)


def beside(results: Results) -> list[PublishedScore]:
    """The papers' numbers for tasks and languages of `results`."""
    there = {(_task(row), row.language) for row in results}
    there |= {(task, MEAN) for task, _ in there}
    return [score for score in published_scores() if (score.task, score.language) in there]


def with_means(results: Results) -> Results:
    """The rows, and after those of a task and metric their plain mean over several languages.

    English is left out of it, and a subject that lacks one of the languages has none.
    """
    rows: list[Result] = []
    for metric in results.distinct("metric"):
        own = results.where(metric=metric)
        rows += own
        languages = [label for label in own.distinct("language") if label != _ENGLISH]
        if len(languages) < 2 or any("-" in label for label in languages):
            continue
        for subject in own.distinct("subject"):
            found = [r for r in own.where(subject=subject) if r.language in languages]
            if len(found) == len(languages):
                value = sum(row.value for row in found) / len(found)
                rows.append(Result(subject, MEAN, metric, value, sum(row.n for row in found)))
    return Results(rows)


def task_table(results: Results, published: Iterable[PublishedScore] = ()) -> Table:
    """Tasks, metrics and languages down; subjects, then the papers' numbers across."""
    from rich.table import Table
    from rich.text import Text

    rows = with_means(results)
    beside_them = list(published)
    subjects = rows.distinct("subject")
    table = Table("task", "language", title=Text("tasks", style="bold"), title_justify="left")
    table.add_column("questions", justify="right")
    for subject in subjects:
        table.add_column(Text(printable(subject)), justify="right")
    sources = dict.fromkeys(score.source for score in beside_them)
    for source in sources:
        table.add_column(Text(source), style="dim")
    cells = {(row.metric, row.language, row.subject): row for row in rows}
    for metric, language in dict.fromkeys((row.metric, row.language) for row in rows):
        own = [cells.get((metric, language, subject)) for subject in subjects]
        n = next(row.n for row in own if row is not None)
        theirs = [_published(beside_them, source, metric, language) for source in sources]
        names = (Text(printable(metric)), Text(printable(language)), str(n))
        table.add_row(*names, *map(_value, own), *map(Text, theirs))
    return table


def _task(row: Result) -> str:
    return row.metric.partition("/")[0]


def _value(row: Result | None) -> str:
    if row is None:
        return "–"
    half = None if row.ci_low is None or row.ci_high is None else (row.ci_high - row.ci_low) / 2
    return f"{row.value:.3f}" + ("" if half is None else f" ±{half:.3f}")


def _published(scores: Sequence[PublishedScore], source: str, metric: str, language: str) -> str:
    """ "name 0.544, name 0.556": those of one paper's table, with their own metric if another."""
    task, _, name = metric.partition("/")
    found = []
    for score in scores:
        if (score.source, score.task, score.language) == (source, task, language):
            is_same = score.metric == name.partition(":")[0]
            half = "" if score.half_width is None else f" ±{score.half_width:.3f}"
            other = "" if is_same else f" {score.metric}"
            found.append(f"{score.subject}{other} {score.value:.3f}{half}")
    return "\n".join(found)


Row = Mapping[str, Any]

_MOST_LISTED = 50


def glitch_markdown(summary: Row, tokens: Sequence[Row]) -> str:
    """The document; names of others are shown as they are and never obeyed."""
    reference, threshold = summary["reference"], summary["threshold"]
    tied = "tied" if summary["tied"] else "untied"
    bias = ", head with bias" if summary["head_bias"] else ""
    parts = [
        f"# Glitch tokens of {escape_markdown(summary['model'])}",
        f"- model: {summary['rows']:,} rows of {summary['width']:,} numbers ({summary['dtype']}), "
        f"{tied}{bias}, {summary['padding']:,} rows of padding; embeddings "
        f"`{summary['embeddings']}`, tokenizer `{summary['tokenizer']}`",
        f"- indicator: {summary['indicator']}, {_number(summary['mean'])} ± "
        f"{_number(summary['std'])} over {summary['n_judged']:,} tokens that text yields",
        f"- reference: {reference['why'] if reference else 'none is known'}",
        f"- threshold: {_number(threshold['value'])}, {threshold['why']}",
        f"- **suspect: {summary['n_suspect']:,}**",
    ]
    parts += [f"- note: {note}" for note in summary["notes"]]
    if summary["drift"] is not None:
        drift = summary["drift"]
        parts.append(f"- drift: {drift['n_matched']:,} rows matched, {drift['how']}")
    if summary["verification"] is not None:
        verdicts = summary["verification"]["verdicts"]
        said = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in verdicts.items())
        parts.append(f"- verification of {summary['verification']['n_tokens']:,} tokens: {said}")
    groups = [
        (g["action"], g["class"], g["tokens"], g["why"], " ".join(map(repr, g["examples"][:5])))
        for g in summary["groups"]
    ]
    parts += ["\n## What to do\n", _table(("do", "class", "tokens", "why", "for example"), groups)]
    classes = [
        (row["class"], row["tokens"], row["suspect"], _number(row["mean"]))
        for row in summary["classes"]
    ]
    parts += ["\n## Classes\n", _table(("class", "tokens", "suspect", "mean"), classes)]
    if summary["curve"]:
        rows = [(row["k"], row["last_tenth"], row["superwords"]) for row in summary["curve"]]
        parts += [
            "\n## Of the K nearest to unused rows\n",
            _table(("K", "last 10 % of ids", "superwords"), rows),
        ]
    wanted = [row for row in tokens if row["is_suspect"] or row["action"] or row["verdict"]]
    listed = [row for row in wanted if row["class"] != "dummy"][:_MOST_LISTED]
    cells = [
        (
            *(row["id"], _name(row), row["class"], _number(row["indicator"])),
            *(_number(row["z"]), "–" if row["count"] is None else row["count"]),
            *(row["reason"] or "–", _number(row["max_probability"]), _number(row["spelled"])),
            row["action"] or "–",
        )
        for row in listed
    ]
    facts = ("id", "token", "class", "indicator", "z", "count", "reason")
    heads = (*facts, "probability", "spelled", "do")
    parts += ["\n## The most suspect tokens\n", _table(heads, cells)]
    return "\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return "There is none."
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape_markdown(str(value))


def _name(row: Row) -> str:
    """A token as text where it is text, else as the vocabulary spells it."""
    return repr(row["token"] if row["text"] is None else row["text"])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
