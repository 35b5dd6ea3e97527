"""The shell of an HTML page: one file that asks the network for nothing.

Owns the head with its content security policy (style and script by their hashes, all else
forbidden), the bar with the links and the switch between light and dark, and writing the file.
Knows nothing of what the sections show. The same sections give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from vocabshift.report.token_html import plain_html, token_css, token_js, visible_html


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
    target = Path(path)
    aside = target.with_name(target.name + ".partial")
    aside.write_text(html, encoding="utf-8", newline="\n")
    aside.replace(target)
    return target


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
