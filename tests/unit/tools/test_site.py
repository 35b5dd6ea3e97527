"""The pages of the site: places, links and references. The program itself checks what it builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import programs
from vocabshift import METRICS
from vocabshift.cli.main import build_parser

site = programs.load("tools/site.py")
ROOT = Path(__file__).parents[3]
HOME = "https://example.org/repository"


def test_every_document_has_a_page_and_a_place_in_the_navigation() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    written = {"reference/command-line.md", "reference/python.md"}
    named = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", config, re.MULTILINE)
    assert len(named) == len(set(named)) > 60
    assert set(site.documents()) | written == set(named)


def test_links_lead_to_pages_or_to_the_repository() -> None:
    pages = site.documents()
    text = """\
---
title: x
---
[a](extend.md#the-ceiling) [b](../recipes/README.md) [c](../recipes/ist) [d](../recipes/ist/run.sh)
[e](#here) [f](https://example.org/x.md) ![g](images/fertility.svg) [h](../src) [i](README.md)
```sh
[a](../recipes/README.md)
```
"""
    assert """\
[a](extend.md#the-ceiling) [b](../recipes/index.md) [c](../recipes/ist/index.md) \
[d](https://example.org/repository/blob/main/recipes/ist/run.sh)
[e](#here) [f](https://example.org/x.md) ![g](images/fertility.svg) \
[h](https://example.org/repository/tree/main/src) [i](index.md)
```sh
[a](../recipes/README.md)
```
""" == site.rewritten(text, ROOT / "docs", pages, HOME)


def test_notebooks_become_pages() -> None:
    text = site.text_of(ROOT / "docs" / "notebooks" / "trim.ipynb")
    assert text.startswith("# Trim: ")
    assert "\n\n```python\nimport vocabshift as vs\n" in text
    assert "docs/notebooks/trim.md" in site.documents()


def test_markdown_inside_details_is_read() -> None:
    """Else the site shows the bars of a table."""
    assert '<details markdown="1"><summary>x</summary>' == site.rewritten(
        "<details><summary>x</summary>", ROOT, {}, HOME
    )


def test_the_reference_of_the_command_line_has_every_argument() -> None:
    text = site.command_line()
    [verbs] = [each for each in build_parser()._actions if isinstance(each.choices, dict)]
    parts = dict(re.findall(r"^## ([\w-]+) \{.*\n((?:(?!## ).*\n)*)", text, re.MULTILINE))
    assert list(verbs.choices) == list(parts)
    for verb, parser in verbs.choices.items():
        for action in parser.filled()._actions:
            for flag in set(action.option_strings) - {"-h", "--help", "--json", "--traceback"}:
                assert flag in parts[verb], (verb, flag)
        assert f"```sh\nvocabshift {verb}" in parts[verb]
    assert all(metric in parts["evaluate"] for metric in METRICS)


def test_what_is_markup_is_spelled_out() -> None:
    assert "a&#124;b &#60;x> &#42; &#95; &#96; c" == site.cell("a|b <x> * _ `\nc")


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    links = ["a/", "a/#there", "a/#not-there", "b/", "#top", "#no", "https://example.org", "x.svg"]
    body = "".join(f'<a href="{link}">x</a>' for link in links)
    (tmp_path / "index.html").write_text(f'<h1 id="top">x</h1>{body}', encoding="utf-8")
    (tmp_path / "a" / "index.html").write_text('<h2 id="there">x</h2>', encoding="utf-8")
    (tmp_path / "x.svg").write_text("<svg/>", encoding="utf-8")
    assert [f"index.html: {link}" for link in ("a/#not-there", "b/", "#no")] == site.broken(
        tmp_path
    )


def test_parameters_of_docstrings_become_lists() -> None:
    pytest.importorskip("griffe")
    listed = programs.load("tools/docstring_lists.py").listed
    text = """\
Do it. Note: this stays.

Parameters:
    a, b: two things, of which
        one is long.
    c: another.

Raises:
    ValueError: for none.
The end: here."""
    assert """\
Do it. Note: this stays.

- `a`, `b`: two things, of which
    one is long.
- `c`: another.

ValueError: for none.
The end: here.""" == listed(text, {"a", "b", "c"})
    assert "It\n\n- `word`: x\n\nThen." == listed("It\nword: x\nThen.")
