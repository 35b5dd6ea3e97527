"""A comparison of two tokenizers as one HTML page. Knows nothing of tokenizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vocabshift.evaluation.compare import (
    ChangedSpan,
    ComparedLine,
    LanguageTotals,
    TokenizerComparison,
    total,
)
from vocabshift.report.html.page import (
    HOW_TO_READ,
    Section,
    page_html,
    tabs,
    token_legend,
    write_page,
)
from vocabshift.report.html.tables import language_head, sort_heads
from vocabshift.report.tables import INVALID, NOTE
from vocabshift.report.tokenized_line import token_line_html, visible_html

MOST_ELEMENTS = 16_000
"""Coloured parts of lines on a page. Longer lines are shown in part: a browser takes seconds for a
hundred thousand elements, and a page of them has 20 MB."""


def write_comparison(comparison: TokenizerComparison, path: str | Path) -> Path:
    """Write the page as one file that needs no network; same input, same bytes."""
    return write_page(comparison_html(comparison), path)


def comparison_html(comparison: TokenizerComparison) -> str:
    """The page as a string."""
    a, b = comparison.a, comparison.b
    everything = total(comparison.languages)
    sections = [Section("totals", "Tokens", _totals(comparison), link="Totals")]
    if comparison.shorter or comparison.longer:
        lead = f"The stretches of text that change most from {a} to {b}, over all their places."
        both = (("shorter", comparison.shorter), ("longer", comparison.longer))
        columns = "".join(
            f"<div><h3>What became {title}</h3>{_changes(comparison, changes)}</div>"
            for title, changes in both
            if changes
        )
        sections.append(
            Section(
                "changes",
                "Shorter and longer",
                f'<div class="pair">{columns}</div>',
                lead,
                "Changes",
            )
        )
    if comparison.lines:
        title = "Lines that changed most"
        sections.append(Section("lines", title, _lines(comparison), HOW_TO_READ, "Lines"))
    subtitle = (
        f"{everything.n_lines:,} lines · {everything.tokens_a:,} tokens became "
        f"{everything.tokens_b:,} ({everything.change:+.1%})"
    )
    return page_html(f"{a} → {b}", subtitle, sections)


def _totals(comparison: TokenizerComparison) -> str:
    a, b = comparison.a, comparison.b
    heads = ["language", "lines", a, b, "change", f"bytes per token, {a}", f"bytes per token, {b}"]
    body = "".join(_total_row(row, comparison.names) for row in comparison.languages)
    foot = ""
    if len(comparison.languages) > 1:
        foot = f"<tfoot>{_total_row(total(comparison.languages), {})}</tfoot>"
    lossy = any(row.lost_a or row.lost_b for row in comparison.languages)
    note = f"<p>{NOTE}</p>" if lossy else ""
    return _table("tokens by language", heads, body, foot) + note


def _total_row(row: LanguageTotals, names: Mapping[str, str]) -> str:
    cells = [
        _number(row.n_lines, f"{row.n_lines:,}"),
        _number(row.tokens_a, f"{row.tokens_a:,}"),
        _number(row.tokens_b, f"{row.tokens_b:,}"),
        _number(
            row.change,
            f"{row.change:+.1%}{INVALID if row.lost_a or row.lost_b else ''}",
            row.change,
        ),
        *(
            _number(
                row.n_bytes / max(tokens, 1),
                f"{row.n_bytes / max(tokens, 1):.3f}{INVALID if lost else ''}",
            )
            for tokens, lost in ((row.tokens_a, row.lost_a), (row.tokens_b, row.lost_b))
        ),
    ]
    return f"<tr>{language_head(row.language, names)}{''.join(cells)}</tr>"


def _changes(comparison: TokenizerComparison, changes: Sequence[ChangedSpan]) -> str:
    heads = ["text", "places", comparison.a, comparison.b, "change"]
    rows = []
    for change in changes:
        numbers = (change.count, change.tokens_a, change.tokens_b)
        cells = "".join(_number(n, f"{n:,}") for n in numbers)
        cells += _number(change.change, f"{change.change:+,}", change.change)
        # Spaces at the ends are part of the stretch: they are shown.
        shown = '<b class="ct">␣</b>'.join(map(visible_html, change.text.split(" ")))
        rows.append(f'<tr><th scope="row"><bdi class="stretch">{shown}</bdi></th>{cells}</tr>')
    return _table("changes", heads, "".join(rows))


def _lines(comparison: TokenizerComparison) -> str:
    by_language: dict[str, list[ComparedLine]] = {}
    for line in comparison.lines:
        by_language.setdefault(line.language, []).append(line)
    panels = [
        (comparison.names.get(language, language), "".join(_pair(comparison, x) for x in lines))
        for language, lines in by_language.items()
    ]
    return token_legend() + tabs("language", "Language", panels)


def _pair(comparison: TokenizerComparison, line: ComparedLine) -> str:
    most = max(100, MOST_ELEMENTS // (2 * len(comparison.lines)))
    views = "".join(
        f'<div class="cut"><h4>{visible_html(name)} <small>{len(tokenized.tokens):,} tokens</small>'
        f"</h4>{token_line_html(tokenized, language=line.language, most=most)}</div>"
        for name, tokenized in ((comparison.a, line.a), (comparison.b, line.b))
    )
    head = (
        f'Line {line.number:,} <small class="{_kind(line.change)}">{line.change:+,} tokens</small>'
    )
    return f'<div class="line"><h3>{head}</h3><div class="pair">{views}</div></div>'


def _table(label: str, heads: Sequence[str], body: str, foot: str = "") -> str:
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="sort">'
        f"<thead><tr>{sort_heads(heads)}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
    )


def _number(value: float, shown: str, change: float = 0.0) -> str:
    kind = f' class="{_kind(change)}"' if change else ""
    return f'<td data-v="{value!r}"{kind}>{shown}</td>'


def _kind(change: float) -> str:
    return "fewer" if change < 0 else "more" if change > 0 else ""
