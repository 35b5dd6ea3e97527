"""The HTML report: Results and some lines of text as one page.

Owns the sections and their order; a section appears only if Results or the views have data for it.
Knows nothing of tokenizers or of how a value was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vocabshift.evaluation.lines.views import TokenViews
from vocabshift.evaluation.metrics.metric import LOSS
from vocabshift.evaluation.metrics.registry import describe, is_known
from vocabshift.report.html.page import (
    HOW_TO_READ,
    Section,
    languages_html,
    page_html,
    tabs,
    write_page,
)
from vocabshift.report.html.svg_charts import Bar, Point, bars, scatter
from vocabshift.report.html.tables import heat_table, vocabularies_html, whole_table
from vocabshift.report.tables import INVALID, decimals, invalid_rows, mean_over, number
from vocabshift.report.tokenized_line import visible_html
from vocabshift.results import WHOLE, Results, averaged

_RENYI = "renyi_efficiency"
_HEADLINES = ("fertility", "bytes_per_token", _RENYI, "gini")
_LENGTHS = ("bytes_per_token", "characters_per_token", "fertility", "tokens_per_character")


def write_html(results: Results, views: TokenViews, path: str | Path) -> Path:
    """Write the report as one file that needs no network; same input, same bytes.

    `views` may be empty. Raises ValueError where there is nothing at all to show.
    """
    return write_page(report_html(results, views), path)


def report_html(results: Results, views: TokenViews) -> str:
    """The report as a string."""
    if not results and not views.languages:
        raise ValueError("there is no result and no line of text: nothing to report")
    by_language, whole = _split(results)
    subjects = _subjects(results, views)
    names = {view.label: view.name for view in views.languages}
    sections = [
        Section("summary", "At a glance", _cards(by_language, whole, subjects, views, names))
    ]
    if by_language:
        sections.append(_figures(by_language, subjects, names))
    if (chart := _renyi(by_language, subjects)) is not None:
        sections.append(chart)
    if whole:
        lead = "Figures that no language has for itself."
        sections.append(Section("whole", "Whole tokenizers", whole_table(whole, results), lead))
    if views.vocabularies:
        lead = "Tokens by the script of their letters."
        body = vocabularies_html(views.vocabularies)
        title = "What vocabularies are spent on"
        sections.append(Section("vocabulary", title, body, lead, "Vocabulary"))
    if views.languages:
        body = languages_html(views.languages)
        sections.append(Section("tokens", "How text is cut", body, HOW_TO_READ, "Tokens"))
    n_languages = len(_languages(by_language)) or len(views.languages)
    facts = [_count(len(subjects), "tokenizer"), _count(n_languages, "language"), views.text]
    return page_html("Tokenizers, compared", " · ".join(filter(None, facts)), sections)


def _split(results: Results) -> tuple[Results, Results]:
    """Figures of languages, and those of tokenizers as a whole.

    Text without a label is called "all" too: the metric tells them apart.
    """
    is_whole = [
        row.language == WHOLE and (describe(row.metric).is_whole or not is_known(row.metric))
        for row in results
    ]
    pairs = list(zip(results, is_whole, strict=True))
    return Results(r for r, whole in pairs if not whole), Results(r for r, whole in pairs if whole)


def _languages(results: Results) -> list[str]:
    """Labels of text; some metrics have scripts or other tokenizers in the place of languages."""
    of_text = [row for row in results if _is_of_text(row.metric)]
    return averaged(Results(of_text or results).distinct("language"))


def _is_of_text(metric: str) -> bool:
    known = describe(metric)
    return known.has_bars and not known.is_whole


def _subjects(results: Results, views: TokenViews) -> list[str]:
    of_views = [subject for view in views.languages for subject in view.lines]
    return list(dict.fromkeys([*results.distinct("subject"), *of_views]))


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _cards(
    results: Results,
    whole: Results,
    subjects: Sequence[str],
    views: TokenViews,
    names: Mapping[str, str],
) -> str:
    """What was compared, and who is first in what."""
    cards = [_card("Tokenizers", str(len(subjects)), "", kind="wide", key=subjects)]
    languages = _languages(results)
    if languages:
        shown = ", ".join(names.get(label, label) for label in languages)
        cards.append(_card("Languages", str(len(languages)), shown, kind="wide"))
    for metric in _HEADLINES if len(subjects) > 1 else ():
        rows = whole if describe(metric).is_whole else results
        if metric in rows.distinct("metric"):
            cards += _winner(rows + results.where(metric=LOSS), metric)
    losers = dict.fromkeys(row.subject for row in results.where(metric=LOSS) if row.value > 0)
    if losers:
        cards.append(
            _card("Text is lost", f"{len(losers)} {INVALID}", ", ".join(losers), kind="warn")
        )
    notes = "".join(f"<li>{visible_html(note)}</li>" for note in views.notes)
    return f'<div class="cards">{"".join(cards)}</div>' + (
        f'<ul class="notes">{notes}</ul>' if notes else ""
    )


def _card(title: str, value: str, text: str, *, kind: str = "", key: Sequence[str] = ()) -> str:
    shown = visible_html(text)
    if key:
        shown = "".join(
            f'<span class="key"><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="b{i % 8}" '
            f'width="10" height="10" rx="2"/></svg>{visible_html(name)}</span>'
            for i, name in enumerate(key)
        )
    return (
        f'<div class="card {kind}"><h3>{visible_html(title)}</h3>'
        f'<p class="big">{visible_html(value)}</p><p class="of">{shown}</p></div>'
    )


def _winner(results: Results, metric: str) -> list[str]:
    """The card of who has the best mean over languages."""
    rows, of = results.where(metric=metric), describe(metric)
    languages, invalid = rows.distinct("language"), invalid_rows(results, metric)
    means = {
        s: mean_over(rows.where(subject=s), languages, invalid) for s in rows.distinct("subject")
    }
    known = {subject: mean for subject, mean in means.items() if mean is not None}
    if not known:
        return []
    first, *others = sorted(known, key=lambda subject: -of.sign * known[subject])
    word, digits = "Highest" if of.sign > 0 else "Lowest", decimals(rows)
    text = first if of.is_whole else f"{first}, mean over languages"
    if others:
        text += f"; then {others[0]} with {number(known[others[0]], digits)}"
    return [_card(f"{word} {of.label}", number(known[first], digits), text)]


def _figures(results: Results, subjects: Sequence[str], names: Mapping[str, str]) -> Section:
    """One tab for each metric: the heat map with its values, then bars for each language."""
    panels = []
    for metric in results.distinct("metric"):
        charts = _all_bars(results, metric, subjects, names)
        panels.append((describe(metric).label, heat_table(results, metric, names) + charts))
    lead = "Press a column's name to sort by it. The best of a row is underlined."
    body = tabs("metric", "Metric", panels)
    return Section("figures", "Languages by tokenizers", body, lead, "Figures")


def _all_bars(
    results: Results, metric: str, subjects: Sequence[str], names: Mapping[str, str]
) -> str:
    """A chart for each language, for metrics that have them: the page must stay small."""
    rows = results.where(metric=metric)
    if not describe(metric).has_bars or all(row.ci_low is None for row in rows):
        return ""
    invalid, digits = invalid_rows(results, metric), decimals(rows)
    charts = []
    for language in rows.distinct("language"):
        items = [
            Bar(
                row.subject,
                row.value,
                number(row.value, digits) + (INVALID if (row.subject, language) in invalid else ""),
                subjects.index(row.subject),
                row.ci_low,
                row.ci_high,
            )
            for row in rows.where(language=language)
        ]
        name = names.get(language, language)
        chart = bars(items, f"{describe(metric).label}, {name}")
        charts.append(f"<figure><figcaption>{visible_html(name)}</figcaption>{chart}</figure>")
    return (
        "<details open><summary>Bars with 95 % intervals</summary>"
        '<p class="note">Every language has its own scale.</p>'
        f'<div class="grid">{"".join(charts)}</div></details>'
    )


def _renyi(results: Results, subjects: Sequence[str]) -> Section | None:
    """Rényi efficiency against compression, where both were measured."""
    measured = results.distinct("metric")
    length = next((metric for metric in _LENGTHS if metric in measured), None)
    if _RENYI not in measured or length is None:
        return None
    invalid = invalid_rows(results, _RENYI)
    below = {(r.subject, r.language): r.value for r in results.where(metric=length)}
    points = []
    for row in results.where(metric=_RENYI):
        key = (row.subject, row.language)
        if key in below and key not in invalid:
            hint = f"{row.subject}, {row.language}: {below[key]:.3f}, {row.value:.3f}"
            points.append(Point(below[key], row.value, subjects.index(row.subject), hint=hint))
    for i, subject in enumerate(subjects):
        of_subject = results.where(subject=subject)
        means = [
            mean_over(
                of_subject.where(metric=m), results.where(metric=m).distinct("language"), invalid
            )
            for m in (length, _RENYI)
        ]
        x, y = means
        if x is not None and y is not None:
            points.append(Point(x, y, i, subject, f"{subject}: {x:.3f}, {y:.3f}"))
    if not points:
        return None
    x_name, y_name = describe(length).label, describe(_RENYI).label
    lead = "Large points are means over languages, small ones single languages."
    body = f'<div class="scroll wide">{scatter(points, x_name, y_name)}</div>'
    return Section("renyi", f"{y_name} against {x_name}", body, lead, "Rényi")
