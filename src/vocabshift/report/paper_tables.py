"""Results -> tables in a given shape, those of the papers among them.

Owns how a shape is filled: which languages are grouped, which rows come last, and which value is
the best. Entries of a paper's table that the results lack are left out, with a note. Renders
nothing; knows of languages only what it is given (`names`, `families`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from vocabshift.evaluation.metrics.registry import METRICS, describe
from vocabshift.report.shapes import SHAPES, Axis, Measure, Shape
from vocabshift.report.table_formats import Cell, Row, Sheet, decimals_for, mark_best
from vocabshift.report.tables import INVALID, MEAN, NOTE, invalid_rows
from vocabshift.results import CODE, UNLABELLED, Result, Results, stands_apart


@dataclass(frozen=True, slots=True)
class _Group:
    """Languages under one head; of several the mean is shown."""

    head: str
    labels: tuple[str, ...]
    is_last: bool = False  # the mean, and groups set apart


def paper_tables(
    results: Results,
    shape: str | Shape,
    *,
    subjects: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    families: Mapping[str, str] | None = None,
) -> list[Sheet]:
    """The tables of `shape` (a name in `SHAPES`, or a shape): one, or one for each metric.

    `subjects`: only these, in this order. `names`: English names of language labels, by which a
    paper's languages are found; `families`: families of labels. Means are plain means over
    languages, and stand only where no language is missing. ValueError for a shape or subject
    that is not known, or where the results hold nothing that the shape shows.
    """
    if isinstance(shape, str):
        if shape not in SHAPES:
            raise ValueError(f"unknown shape {shape!r}; known are: {', '.join(SHAPES)}")
        shape = SHAPES[shape]
    results = _of_subjects(results, subjects)
    measures, notes = _measures(results, shape)
    of_sheets = [measures] if "metric" in (shape.down, shape.across) else [[m] for m in measures]
    sheets = []
    for own in of_sheets:
        rows = Results(row for m in own for row in results.where(metric=m.metric))
        groups, more = _groups(rows, shape, names or {}, families or {})
        sheet = _sheet(
            rows, shape, own, groups, {m.metric: invalid_rows(results, m.metric) for m in own}
        )
        if any(cell.mark for row in sheet.rows for cell in row.cells):
            more.append(f"{NOTE}.")
        sheets.append(replace(sheet, notes=(*notes, *more)))
    return sheets


def _of_subjects(results: Results, subjects: Sequence[str]) -> Results:
    found = results.distinct("subject")
    for name in subjects:
        if name not in found:
            raise ValueError(f"the results hold no subject {name!r}; they hold {', '.join(found)}")
    if not subjects:
        return results
    order = {name: place for place, name in enumerate(subjects)}
    kept = (row for row in results if row.subject in order)
    return Results(sorted(kept, key=lambda row: order[row.subject]))


def _measures(results: Results, shape: Shape) -> tuple[list[Measure], list[str]]:
    """What of a shape's metrics is there, and a note for each that is not."""
    there = results.distinct("metric")
    if not there:
        raise ValueError("the results hold no rows; `vocabshift evaluate --output` writes them")
    if not shape.measures:
        return [Measure(metric) for metric in there], []
    known = [measure for measure in shape.measures if measure.metric in there]
    lacking = [measure for measure in shape.measures if measure.metric not in there]
    if not known:
        wanted = " ".join(measure.metric for measure in shape.measures)
        raise ValueError(
            f"{shape.name} shows {wanted}, and the results hold {', '.join(there)}; "
            f"run: vocabshift evaluate … --metrics {wanted}"
        )
    notes = [f"{m.head or m.metric} is left out: the results hold no {m.metric}." for m in lacking]
    return known, notes


def _sheet(
    rows: Results,
    shape: Shape,
    measures: Sequence[Measure],
    groups: Sequence[_Group],
    invalid: Mapping[str, Set[tuple[str, str]]],
) -> Sheet:
    subjects = rows.distinct("subject")
    cells = _cells(rows, groups, measures, invalid)

    def heads(axis: Axis) -> list[str]:
        if axis == "subject":
            return subjects
        return [g.head for g in groups] if axis == "language" else [_head(m) for m in measures]

    def cell(i: int, j: int) -> Cell:
        at = {"subject": 0, "language": 0, "metric": 0, shape.down: i, shape.across: j}
        return cells[at["subject"], at["language"], at["metric"]]

    columns = heads(shape.across)
    begins = next((i for i, group in enumerate(groups) if group.is_last), -1)
    body = [
        Row(
            head,
            tuple(cell(i, j) for j in range(len(columns))),
            begins_group=shape.down == "language" and i == begins,
        )
        for i, head in enumerate(heads(shape.down))
    ]
    name = measures[0].metric
    is_plain = not shape.title
    subject = "tokenizer" if name in METRICS else "model"
    return Sheet(
        f"{shape.name}-{name.replace('_', '-')}" if is_plain else shape.name,
        title_of(name) if is_plain else shape.title,
        {"subject": subject, "language": "language", "metric": ""}[shape.down],
        tuple(columns),
        tuple(body),
    )


def title_of(metric: str) -> str:
    """Return a metric with its meaning and an arrow to its better end."""
    known = describe(metric)
    note = f" ({known.note})" if known.note else ""
    return known.label + note + {1: " ↑", -1: " ↓", 0: ""}[known.sign]


def _head(measure: Measure) -> str:
    return measure.head or describe(measure.metric).label


def _groups(
    rows: Results, shape: Shape, names: Mapping[str, str], families: Mapping[str, str]
) -> tuple[list[_Group], list[str]]:
    """Return the languages as the shape shows them, and the notes on them."""
    found = rows.distinct("language")
    labels = [label for label in sorted(found) if not stands_apart(label)]
    pairs = sorted({label for label in found if stands_apart(label)} - {CODE, UNLABELLED})
    apart = [
        _Group(label, (label,), is_last=True)
        for label in (CODE, *pairs, UNLABELLED)
        if label in found
    ]
    there = {names.get(label, label) for label in labels}
    lacking = [name for name in shape.languages if name not in there]
    notes = []
    if lacking and labels:
        notes.append(f"In the paper and not in these results: {', '.join(lacking)}.")
    if not shape.has_others:
        return _chosen(labels, shape, names), notes
    has_mean = len(labels) > 1 and describe(rows[0].metric).place == "language"
    together = [_Group(MEAN, tuple(labels), is_last=True)] if has_mean else []
    if "language" not in (shape.down, shape.across):
        if together:
            notes.append(f"Over {len(labels)} languages: {', '.join(labels)}.")
        return together or [_Group(label, (label,)) for label in labels] or apart[:1], notes
    if shape.by_family:
        kinds = sorted({families.get(label, "other") for label in labels})
        own = [_Group(k, tuple(x for x in labels if families.get(x, "other") == k)) for k in kinds]
        notes += [f"{group.head}: {', '.join(group.labels)}." for group in own]
    else:
        own = [_Group(label, (label,)) for label in labels]
    return [*own, *together, *apart], notes


def _chosen(labels: Sequence[str], shape: Shape, names: Mapping[str, str]) -> list[_Group]:
    """The paper's languages by their names; with the label where one has several texts."""
    groups = []
    for name in shape.languages:
        own = [label for label in labels if names.get(label, label) == name]
        heads = [name if len(own) == 1 else f"{name} ({label})" for label in own]
        groups += [_Group(head, (label,)) for head, label in zip(heads, own, strict=True)]
    if not groups:
        raise ValueError(
            f"{shape.name} shows {', '.join(shape.languages)}, and the results hold none of them"
        )
    return groups


def _cells(
    rows: Results,
    groups: Sequence[_Group],
    measures: Sequence[Measure],
    invalid: Mapping[str, Set[tuple[str, str]]],
) -> dict[tuple[int, int, int], Cell]:
    """Every cell by the places of its subject, group and measure."""
    found = {(row.subject, row.language, row.metric): row for row in rows}
    subjects = rows.distinct("subject")
    cells = {}
    for k, measure in enumerate(measures):
        raw = [[_cell(found, subject, g, measure, invalid) for subject in subjects] for g in groups]
        known = describe(measure.metric)
        decimals = measure.decimals if measure.decimals is not None else known.decimals
        if decimals is None:
            decimals = decimals_for(cell.value for row in raw for cell in row)
        better = known.sign if measure.better is None else measure.better
        for j, column in enumerate(raw):
            marked = mark_best([replace(cell, decimals=decimals) for cell in column], better)
            cells.update({(i, j, k): cell for i, cell in enumerate(marked)})
    return cells


def _cell(
    found: Mapping[tuple[str, str, str], Result],
    subject: str,
    group: _Group,
    measure: Measure,
    invalid: Mapping[str, Set[tuple[str, str]]],
) -> Cell:
    own = [found.get((subject, label, measure.metric)) for label in group.labels]
    rows = [row for row in own if row is not None]
    is_invalid = any((subject, label) in invalid[measure.metric] for label in group.labels)
    empty = Cell(subject, group.head, measure.metric, None, is_percent=measure.is_percent)
    if not rows or len(rows) < len(own):
        return empty
    if measure.is_total:
        value = sum(row.value * row.n for row in rows)
    else:
        value = sum(row.value for row in rows) / len(rows)
    whole = replace(
        empty, value=value, n=sum(row.n for row in rows), mark=INVALID if is_invalid else ""
    )
    if len(rows) > 1:
        return whole
    (row,) = rows
    if measure.is_total:
        return whole
    language = group.head if group.is_last else row.language
    return replace(whole, language=language, low=row.ci_low, high=row.ci_high)
