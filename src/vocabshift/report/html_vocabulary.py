"""What vocabularies are spent on: a stacked bar for each tokenizer, and the numbers as a table.

Owns which parts get a colour of their own: those with the largest share of any vocabulary. Knows
nothing of pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vocabshift.report.html_tables import sort_heads
from vocabshift.report.svg_charts import N_PARTS, stacked
from vocabshift.report.token_html import visible_html
from vocabshift.report.views import VocabularyPart

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
