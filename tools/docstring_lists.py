"""Docstrings for the site: the lines `name: what it is` of our docstrings become a list.

An extension of griffe, which mkdocstrings reads Python with. In a terminal such lines are easy to
read as they are; Markdown would join them to one paragraph.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import griffe

_SECTION = re.compile(r"^(?:Parameters|Args|Raises):\n((?:(?:    .*)?\n)+)", re.MULTILINE)
_ITEM = re.compile(r"^((?:\w+)(?:, \w+)*): (?=\S)", re.MULTILINE)


def listed(text: str, names: set[str] | None = None) -> str:
    """A docstring with a list in place of lines that begin with a name of `names` and a colon.

    Without `names` any lower-case word begins an item.
    """
    text = _SECTION.sub(lambda match: textwrap.dedent(match[1]), text + "\n").rstrip("\n")
    lines: list[str] = []
    in_list = False  # inside an item or after one
    for given in text.splitlines():
        line, match = given, _ITEM.match(given)
        found = match[1].split(", ") if match else []
        is_item = bool(found) and (
            found[0] in names if names is not None else found[0].islower() and line[0].isalpha()
        )
        if is_item and not in_list and lines and lines[-1]:
            lines.append("")
        if is_item and match:
            shown = ", ".join(f"`{name}`" for name in found)
            line = f"- {shown}: {given[match.end() :]}"
        elif in_list and line and not line.startswith(" ") and lines[-1]:
            lines.append("")  # the list ends where a line is not indented
        in_list = is_item or (in_list and line.startswith(" "))
        lines.append(line)
    return "\n".join(lines)


class DocstringLists(griffe.Extension):
    """Changes the docstrings of functions and classes as they are read."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """A function: only its parameters begin items."""
        if func.docstring:
            names = {each.name for each in func.parameters}
            func.docstring.value = listed(func.docstring.value, names)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """A field: the comment after it, if it has no docstring."""
        if attr.docstring is None and attr.lineno and isinstance(attr.filepath, Path):
            line = attr.filepath.read_text(encoding="utf-8").splitlines()[attr.lineno - 1]
            _, mark, comment = line.partition("  # ")
            if mark:
                attr.docstring = griffe.Docstring(comment, parent=attr)

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """A class: any name."""
        if cls.docstring:
            cls.docstring.value = listed(cls.docstring.value)
