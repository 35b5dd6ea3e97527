"""Token views on a page: lines of text as tokenizers cut them, and what the marks mean.

Knows nothing of figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from vocabshift.report.html_tabs import tabs
from vocabshift.report.pieces import TokenizedLine
from vocabshift.report.token_html import token_line_html, visible_html
from vocabshift.report.views import LanguageView

HOW_TO_READ = (
    "Point at a token for its id and bytes; or press Tab to reach a line, then the arrow keys."
)


def languages_html(languages: Sequence[LanguageView]) -> str:
    """A tab for each language: its lines, cut by each tokenizer."""
    return token_legend() + tabs(
        "language", "Language", [(v.name, _language(v)) for v in languages]
    )


def _language(view: LanguageView) -> str:
    whole = [lines for lines in view.lines.values() if not any(map(_is_lossy, lines))]
    fewest = min(map(_n_tokens, whole), default=0)
    blocks = []
    for subject, lines in view.lines.items():
        n_tokens = _n_tokens(lines)
        n_bytes = sum(line.n_bytes for line in lines)
        more = f" · {n_tokens / fewest:.2f} × the fewest" if n_tokens > fewest > 0 else ""
        facts = f"{n_tokens:,} tokens · {n_bytes / max(n_tokens, 1):.2f} bytes each{more}"
        shown = "".join(token_line_html(line, language=view.label) for line in lines)
        blocks.append(
            f'<div class="cut"><h3>{visible_html(subject)} <small>{facts}</small></h3>{shown}</div>'
        )
    return "".join(blocks)


def _is_lossy(line: TokenizedLine) -> bool:
    """Whether a token stands for text that it cannot give back: few such tokens are no merit."""
    return any(piece.unknown for piece in line.pieces)


def _n_tokens(lines: Sequence[TokenizedLine]) -> int:
    return sum(len(line.pieces) for line in lines)


def token_legend() -> str:
    """What the marks in a line mean."""
    marks = (
        ("k0 sw", "superword", "text on both sides of a space"),
        ("x2-2 cs", "cut syllable", "tokens share an orthographic syllable"),
        ("x4-3 cc", "cut character", "tokens share the bytes of a character"),
        ("un", "unknown", "text that the vocabulary cannot say"),
    )
    return (
        '<p class="legend tl">'
        + "".join(
            f'<span class="mark"><i class="{name}">{label}</i> {text}</span>'
            for name, label, text in marks
        )
        + "</p>"
    )
