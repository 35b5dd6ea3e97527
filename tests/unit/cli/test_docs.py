"""The commands in the documentation are ones that the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from vocabshift.cli.main import build_parser

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def commands(page: Path) -> list[str]:
    """Indented or fenced lines that call vocabshift."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if re.match(r"\s{4}vocabshift |vocabshift \w+ ", line)]


def known_flags() -> set[str]:
    """Flags of all verbs."""
    [verbs] = [a for a in build_parser()._actions if hasattr(a, "choices") and a.dest == "verb"]
    assert isinstance(verbs.choices, dict)
    parsers = verbs.choices.values()
    return {
        flag for parser in parsers for action in parser._actions for flag in action.option_strings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_that_are_spoken_of_exist(page: Path) -> None:
    """In running text too."""
    spoken = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text(encoding="utf-8")))
    assert set() == spoken - known_flags()


def test_commands_parse() -> None:
    """Every argument is known, and none that is required is missing."""
    found = [command for page in PAGES for command in commands(page)]
    assert len(found) >= 5
    for command in found:
        build_parser().parse_args(shlex.split(command)[1:])
