"""The index of all tables of the papers (`recipes/data/record.py recipes` writes it)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent / name) for name in ("data", "papers")]
from beside import MARKS, anchor, heading, papers
from record import markdown


def tables(_rows: object) -> dict[str, str]:
    """One list for each paper, by the name of its file."""
    return {name: _index(paper) for name, paper in papers().items()}


def _index(paper: dict[str, Any]) -> str:
    lines = []
    for number, entry in paper["tables"].items():
        if "recipe" in entry:
            title = heading(number, entry)
            where = f"[{entry['recipe']}]({entry['recipe']}/README.md#{anchor(title)})"
            mark = MARKS[entry["mark"]] if "mark" in entry else "the paper has no figures"
        else:
            where, mark = f"not here: {entry['missing']}", ""
        lines.append((number, entry["shows"], where, mark))
    return f"### {paper['name']}\n\n" + markdown(
        ("table", "shows", "where", "compare"), lines, left=4
    )
