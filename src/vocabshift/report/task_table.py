"""Scores on tasks next to those of the papers: one line for each task, metric and language.

Owns the papers' numbers (published_scores.jsonl: each with its source, as shares, half a 95 %
interval if the paper gives one) and their place next to ours. Renders from Results alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vocabshift.report import escape
from vocabshift.report.tables import MEAN
from vocabshift.results import Result, Results

if TYPE_CHECKING:
    from rich.table import Table

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
        table.add_column(Text(escape.visible(subject)), justify="right")
    sources = dict.fromkeys(score.source for score in beside_them)
    for source in sources:
        table.add_column(Text(source), style="dim")
    cells = {(row.metric, row.language, row.subject): row for row in rows}
    for metric, language in dict.fromkeys((row.metric, row.language) for row in rows):
        own = [cells.get((metric, language, subject)) for subject in subjects]
        n = next(row.n for row in own if row is not None)
        theirs = [_published(beside_them, source, metric, language) for source in sources]
        names = (Text(escape.visible(metric)), Text(escape.visible(language)), str(n))
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
