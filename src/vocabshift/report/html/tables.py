"""Tables of Results in HTML: languages down, tokenizers across, cells coloured by value.

A table is the heat map too: every value is printed, the colour only helps to find it. Owns
colours' levels, the mark of the best value of a row, the dagger where text was lost, and what
sorting needs. Knows nothing of pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from vocabshift.evaluation.lines.views import VocabularyPart
from vocabshift.evaluation.metrics.registry import describe
from vocabshift.report.html.svg_charts import N_PARTS, stacked
from vocabshift.report.tables import INVALID, NOTE, decimals, invalid_rows, mean_over, number
from vocabshift.report.tokenized_line import plain_html, visible_html
from vocabshift.results import Result, Results, averaged

N_LEVELS = 9
"""Colours of the heat map; the style sheet has `h0` to `h8`."""

_WIDE_RANGE = 3.0  # highest over lowest above which colours follow the logarithm


NOTHING = Results()


def heat_table(results: Results, metric: str, names: Mapping[str, str]) -> str:
    """The table of one metric; `names` are languages' names for people, by label.

    The last row is the plain mean over languages, for subjects that have them all.
    """
    rows = results.where(metric=metric)
    subjects, languages = rows.distinct("subject"), rows.distinct("language")
    cell = {(row.subject, row.language): row for row in rows}
    invalid = invalid_rows(results, metric)
    level = levels([row.value for row in rows if (row.subject, row.language) not in invalid])
    digits = decimals(rows)
    body = []
    for language in languages:
        of_row = [cell.get((subject, language)) for subject in subjects]
        best = _best(of_row, metric, invalid)
        cells = "".join(_cell(row, level, digits, row is best, invalid) for row in of_row)
        body.append(f"<tr>{language_head(language, names)}{cells}</tr>")
    known = describe(metric)
    arrow = {1: "higher is better", -1: "lower is better", 0: ""}[known.sign]
    caption = ", ".join(part for part in (known.note, arrow) if part)
    has_mean = len(averaged(languages)) > 1 and known.place == "language"
    foot = _mean_row(rows, subjects, languages, digits, invalid) if has_mean else ""
    dagger = f'<p class="note">{visible_html(NOTE)}</p>' if invalid else ""
    head = known.place
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{plain_html(known.label)}">'
        f'<table class="heat sort"><caption>{visible_html(caption)}</caption>'
        f"<thead><tr>{sort_heads([head, *subjects])}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody>{foot}</table></div>{dagger}"
    )


def whole_table(results: Results, losses: Results = NOTHING) -> str:
    """Figures that belong to tokenizers as a whole: metrics down, tokenizers across.

    `losses`: results that tell where text was lost.
    """
    is_marked = False
    subjects = results.distinct("subject")
    body = []
    for metric in results.distinct("metric"):
        rows = results.where(metric=metric)
        cell = {row.subject: row for row in rows}
        invalid = {subject for subject, _ in invalid_rows(results + losses, metric)}
        shown = "".join(
            _plain_cell(cell.get(s), decimals(rows), INVALID if s in invalid else "")
            for s in subjects
        )
        is_marked |= bool(invalid)
        label, meaning = describe(metric).label, describe(metric).note
        title = visible_html(label) + (f"<small>{visible_html(meaning)}</small>" if meaning else "")
        body.append(f'<tr><th scope="row">{title}</th>{shown}</tr>')
    heads = "".join(f'<th scope="col">{visible_html(name)}</th>' for name in ("", *subjects))
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="whole tokenizers">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        + (f'<p class="note">{visible_html(NOTE)}</p>' if is_marked else "")
    )


def sort_heads(names: Sequence[str]) -> str:
    """Head cells with buttons; `page.js` sorts by them."""
    return "".join(
        f'<th scope="col"><button type="button">{visible_html(name)}'
        '<span class="arrow" aria-hidden="true"></span></button></th>'
        for name in names
    )


def language_head(label: str, names: Mapping[str, str]) -> str:
    """The head cell of a language: its name, and its label where that is another."""
    name = names.get(label, label)
    small = "" if name == label else f"<small>{visible_html(label)}</small>"
    return f'<th scope="row">{visible_html(name)}{small}</th>'


def levels(values: Sequence[float]) -> Callable[[float], int]:
    """Where a value stands between the lowest (0) and the highest (N_LEVELS - 1)."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    by_ratio = low > 0 and high / low > _WIDE_RANGE

    def scale(value: float) -> float:
        return math.log(value) if by_ratio else value

    def level(value: float) -> int:
        if high <= low or not math.isfinite(value):
            return 0
        inside = min(max(value, low), high)
        share = (scale(inside) - scale(low)) / (scale(high) - scale(low))
        return min(int(share * N_LEVELS), N_LEVELS - 1)

    return level


def _best(
    of_row: Sequence[Result | None], metric: str, invalid: AbstractSet[tuple[str, str]]
) -> Result | None:
    sign = describe(metric).sign
    valid = [
        row for row in of_row if row is not None and (row.subject, row.language) not in invalid
    ]
    if not sign or len(valid) < 2:
        return None
    return max(valid, key=lambda row: sign * row.value)


def _cell(
    row: Result | None,
    level: Callable[[float], int],
    digits: int,
    is_best: bool,
    invalid: AbstractSet[tuple[str, str]],
) -> str:
    if row is None:
        return '<td class="none">–</td>'
    is_invalid = (row.subject, row.language) in invalid
    shown = number(row.value, digits) + (INVALID if is_invalid else "")
    interval = ""
    if row.ci_low is not None and row.ci_high is not None:
        interval = f"<small>{number(row.ci_low, digits)}–{number(row.ci_high, digits)}</small>"
    name = "none" if is_invalid else f"h{level(row.value)}{' best' if is_best else ''}"
    strong = f"<b>{shown}</b>" if is_best else shown
    return f'<td class="{name}" data-v="{float(row.value)!r}">{strong}{interval}</td>'


def _plain_cell(row: Result | None, digits: int, mark: str) -> str:
    if row is None:
        return '<td class="none">–</td>'
    return f'<td data-v="{float(row.value)!r}">{number(row.value, digits)}{mark}</td>'


def _mean_row(
    rows: Results,
    subjects: Sequence[str],
    languages: Sequence[str],
    digits: int,
    invalid: AbstractSet[tuple[str, str]],
) -> str:
    cells = []
    for subject in subjects:
        mean = mean_over(rows.where(subject=subject), languages, invalid)
        cells.append(f"<td>{'–' if mean is None else number(mean, digits)}</td>")
    return f'<tfoot><tr><th scope="row">mean</th>{"".join(cells)}</tr></tfoot>'


# What vocabularies are spent on: a stacked bar for each tokenizer, and the numbers as a table.
# Parts with the largest share of any vocabulary get a colour of their own.

_OTHER = "all others"


def vocabularies_html(vocabularies: Mapping[str, Sequence[VocabularyPart]]) -> str:
    """Bars, their legend and the table."""
    shares: dict[str, float] = {}  # the largest that a part has in any vocabulary
    for parts in vocabularies.values():
        total = sum(part.tokens for part in parts) or 1
        for part in parts:
            shares[part.name] = max(shares.get(part.name, 0.0), part.tokens / total)
    by_share = sorted(shares, key=lambda name: (-shares[name], name))
    largest = by_share[: N_PARTS - 1]
    bars = "".join(_bar(subject, parts, largest) for subject, parts in vocabularies.items())
    colours = {name: i for i, name in enumerate(largest)}
    if len(by_share) > len(largest):
        colours[_OTHER] = N_PARTS - 1
    legend = "".join(
        '<span class="key"><svg viewBox="0 0 10 10" aria-hidden="true"><rect '
        f'class="v{colour}" width="10" height="10" rx="2"/></svg>{_name(name)}</span>'
        for name, colour in colours.items()
    )
    return (
        f'<p class="legend">{legend}</p>{bars}'
        f"<details><summary>The same as a table</summary>{_table(vocabularies, by_share)}</details>"
    )


def _bar(subject: str, parts: Sequence[VocabularyPart], largest: Sequence[str]) -> str:
    amounts = dict.fromkeys(largest, 0)
    rest = 0
    for part in parts:
        if part.name in amounts:
            amounts[part.name] += part.tokens
        else:
            rest += part.tokens
    drawn = [(name, float(amounts[name]), i) for i, name in enumerate(largest)]
    drawn.append((_OTHER, float(rest), N_PARTS - 1))
    superwords = sum(part.superwords for part in parts)
    facts = f"{sum(part.tokens for part in parts):,} tokens"
    facts += f", {superwords:,} superwords" if superwords else ""
    chart = stacked(drawn, f"vocabulary of {subject} by script")
    return (
        f'<div class="vocabulary"><h3>{visible_html(subject)} <small>{facts}</small></h3>'
        f"{chart}</div>"
    )


def _table(vocabularies: Mapping[str, Sequence[VocabularyPart]], names: Sequence[str]) -> str:
    body = []
    for name in names:
        cells = []
        for parts in vocabularies.values():
            tokens = sum(part.tokens for part in parts if part.name == name)
            cells.append(f'<td data-v="{tokens}">{tokens:,}</td>')
        body.append(f'<tr><th scope="row">{_name(name)}</th>{"".join(cells)}</tr>')
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="vocabularies by script">'
        f'<table class="sort"><thead><tr>{sort_heads(["script", *vocabularies])}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _name(part: str) -> str:
    """Unicode's names of scripts have underscores for spaces."""
    return visible_html(part.replace("_", " "))
