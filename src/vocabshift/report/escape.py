"""Escaping of names in tables: Markdown, LaTeX and CSV show them and never interpret them.

Owns the special characters of each of the three. A name may come from an untrusted file.
"""

from __future__ import annotations

import re

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # after the end of a row, [ and * would belong to it
    "*": "{*}",
    "–": "--",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "†": r"$^\dagger$",
}


def visible(text: str) -> str:
    """`text` with control and direction characters spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def markdown(text: str) -> str:
    """`text` for a cell or a sentence of GitHub's Markdown: no markup, no HTML, no new cell.

    An underscore between letters or digits stays, for it means nothing there: `mni_Mtei`.
    """
    escaped = re.sub(r"([\\`*\[\]|~$])", r"\\\1", visible(text))
    escaped = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex(text: str) -> str:
    """`text` as LaTeX prints it; no command in it is run."""
    return "".join(_LATEX.get(c, c) for c in visible(text))


def csv(text: str) -> str:
    """`text` for a CSV cell that no spreadsheet takes for a formula: `'` stands before it then.

    Quoting commas and quotes is the csv module's.
    """
    shown = visible(text)
    return f"'{shown}" if shown.lstrip()[:1] in ("=", "+", "-", "@") else shown
