"""The commands in the documentation are ones that the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from vocabshift.cli.config import config_first
from vocabshift.cli.main import build_parser

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "recipes").rglob("README.md")),
    ROOT / "skills" / "vocabshift" / "SKILL.md",
]

OTHER_PROGRAMS = {
    "CONTRIBUTING.md": {"--only"},
    "docs/clusters.md": {"--archives", "--deploy-mode", "--executor-cores", "--executor-memory"},
    "docs/datasets.md": {"--append-eod", "--data-path"},
    "docs/judging-models.md": {"--questions"},
    "docs/releasing.md": {"--builtin-schema", "--offline", "--validate"},
    "docs/superwords.md": {"--bytes", "--lines"},
    "docs/speculative-decoding.md": {"--speculative-token-map"},
    "recipes/keep_the_model/README.md": {"--arm", "--eval", "--final", "--hours", "--stage"},
    "recipes/llama_indic/README.md": {"--config_file"},
    "recipes/smollm2/README.md": {"--arm"},
    "recipes/accelerate/README.md": {"--config_file", "--machine_rank", "--main_process_ip"},
}
"""Flags of other programs, benchmarks/ and tools/ that pages name; beside them the recipes' own."""

RECIPES = {"--smoke"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands(page: Path) -> list[str]:
    """Calls of vocabshift in indented or fenced lines, in front of a pipe or comment."""
    text = page.read_text(encoding="utf-8")
    fenced = "\n".join(re.findall(r"^ *```\w*\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE))
    indented = "\n".join(re.findall(r"^(?: {4}|\t)\S.*(?:\n {6,}\S.*)*", text, flags=re.MULTILINE))
    lines = re.sub(r"\\\n\s*", " ", f"{fenced}\n{indented}").splitlines()
    calls = (re.fullmatch(r"\s*(?:[^#]* -m )?(vocabshift\s.*)", line) for line in lines)
    return [call[1] for call in calls if call]


def words_of(command: str) -> list[str]:
    """What the shell hands to vocabshift."""
    words = shlex.split(command, comments=True)[1:]
    ends = [at for at, word in enumerate(words) if word in ("|", ">", "&&", ";")]
    return words[: min(ends, default=len(words))]


def known_flags() -> set[str]:
    """Flags of all verbs."""
    [verbs] = [a for a in build_parser()._actions if hasattr(a, "choices") and a.dest == "verb"]
    assert isinstance(verbs.choices, dict)
    parsers = verbs.choices.values()
    return {
        flag
        for parser in parsers
        for action in parser.filled()._actions
        for flag in action.option_strings
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_flags_that_are_spoken_of_exist(page: Path) -> None:
    """In running text too."""
    spoken = set(re.findall(r"(?<![\w-])--[a-z][\w-]*\w", page.read_text(encoding="utf-8")))
    others = OTHER_PROGRAMS.get(name_of(page), set())
    assert set() == spoken - known_flags() - others - RECIPES
    assert others <= spoken  # nothing stays in the list that a page no longer names


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_parse(page: Path) -> None:
    """Every argument is known, and none that is required is missing."""
    for command in commands(page):
        build_parser().parse_args(config_first(words_of(command)))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_of_recipes_are_there(page: Path) -> None:
    """Each that is named can be started, and takes what it is given."""
    text = page.read_text(encoding="utf-8")
    for script, flag in re.findall(r"\b(recipes/[\w/]+\.sh)(?: +(--[\w-]+))?", text):
        assert (ROOT / script).stat().st_mode & 0o111, script
        assert not flag or flag in (ROOT / script).read_text(encoding="utf-8"), script


def test_the_skill_says_when_to_use_which_verb() -> None:
    """Every verb there is stands in its table, and no other."""
    [verbs] = [a for a in build_parser()._actions if hasattr(a, "choices") and a.dest == "verb"]
    text = PAGES[-1].read_text(encoding="utf-8")
    [table] = re.findall(r"\| the user wants .*?\n\n", text, re.DOTALL)
    named = set(re.findall(r"`([a-z-]+)(?: --[\w-]+)?`", table))
    assert set(verbs.choices) == named


def test_commands_are_found() -> None:
    """In README, in the pages and in the recipes; where a pattern overlooks them, this fails."""
    found = {name_of(page): len(commands(page)) for page in PAGES}
    assert found["README.md"] >= 15
    assert found["skills/vocabshift/SKILL.md"] >= 8
    assert sum(n for name, n in found.items() if name.startswith("docs/")) >= 15
    assert sum(n for name, n in found.items() if name.startswith("recipes/")) >= 5
