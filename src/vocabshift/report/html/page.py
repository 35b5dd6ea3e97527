"""The shell of an HTML page: one file that asks the network for nothing.

Owns the head with its content security policy (style and script by their hashes, all else
forbidden), the bar with the links and the switch between light and dark, and writing the file.
The same sections give the same bytes. And what several pages have: tabs, and lines of text as
tokenizers cut them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from vocabshift.evaluation.lines.views import LanguageView, TokenizedLine
from vocabshift.report.tokenized_line import (
    plain_html,
    token_css,
    token_js,
    token_line_html,
    visible_html,
)
from vocabshift.storage.output import write_whole


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page; `body` is HTML, everything else is plain text."""

    id: str
    title: str
    body: str
    lead: str = ""  # one sentence below the title
    link: str = ""  # short name in the bar; the title, where it is empty


def page_html(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole document."""
    css = files(__package__).joinpath("page.css").read_text(encoding="utf-8") + token_css()
    js = token_js() + files(__package__).joinpath("page.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(js)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    links = "".join(
        f'<a href="#{section.id}">{visible_html(section.link or section.title)}</a>'
        for section in sections
    )
    body = "\n".join(map(_section, sections))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="vocabshift">
<title>{plain_html(title)}</title>
<link rel="icon" href="data:,">
<style>{css}</style>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="top">
<div class="head"><div><h1>{visible_html(title)}</h1><p>{visible_html(subtitle)}</p></div>
<button type="button" id="theme" aria-pressed="false">Dark</button></div>
<nav aria-label="Sections">{links}</nav>
</header>
<main id="main">
{body}
</main>
<footer>Written by vocabshift. This file is complete: it loads nothing and sends nothing.</footer>
<script>{js}</script>
</body>
</html>
"""


def write_page(html: str, path: str | Path) -> Path:
    """Write the page; it appears whole or not at all."""
    write_whole(Path(path), html)
    return Path(path)


def _section(section: Section) -> str:
    lead = f'<p class="lead">{visible_html(section.lead)}</p>' if section.lead else ""
    return (
        f'<section id="{section.id}" aria-labelledby="{section.id}-title">'
        f'<h2 id="{section.id}-title">{visible_html(section.title)}</h2>{lead}\n'
        f"{section.body}\n</section>"
    )


def _digest(content: str) -> str:
    """A hash as content security policies write it."""
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def tabs(group: str, label: str, panels: Sequence[tuple[str, str]]) -> str:
    """Several panels of which one is seen at a time; all of them where no script runs.

    `page.js` brings the markup to life (ARIA's tabs pattern: arrow keys, Home and End).
    `panels` are (name, HTML); `group` is unique on the page, `label` says what is chosen.
    """
    buttons = "".join(
        f'<button type="button" role="tab" id="{group}-tab-{i}" aria-controls="{group}-{i}" '
        f'aria-selected="{"true" if i == 0 else "false"}">{visible_html(name)}</button>'
        for i, (name, _) in enumerate(panels)
    )
    bodies = "\n".join(
        f'<div class="panel" role="tabpanel" id="{group}-{i}" aria-labelledby="{group}-tab-{i}">'
        f"{body}</div>"
        for i, (_, body) in enumerate(panels)
    )
    return (
        f'<div class="tabs"><div class="strip" role="tablist" aria-label="{label}">{buttons}</div>'
        f"\n{bodies}</div>"
    )


HOW_TO_READ = (
    "Point at a token for its id and bytes; or press Tab to reach a line, then the arrow keys."
)


def languages_html(languages: Sequence[LanguageView]) -> str:
    """A tab for each language: its lines, cut by each tokenizer."""
    return token_legend() + tabs(
        "language", "Language", [(v.name, _language(v)) for v in languages]
    )


def _language(view: LanguageView) -> str:
    whole = [lines for lines in view.lines.values() if not any(line.lost for line in lines)]
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


def _n_tokens(lines: Sequence[TokenizedLine]) -> int:
    return sum(len(line.tokens) for line in lines)


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
