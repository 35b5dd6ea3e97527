"""Recipes that keep their raw results: their READMEs' tables are made of these."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[3] / "recipes"
RECORDED = sorted(file.parent.name for file in RECIPES.glob("*/results.jsonl"))


def test_there_are_such_recipes() -> None:
    assert {"smollm2", "trim"} <= set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_the_tables_of_a_readme_are_those_of_its_results(program, name: str) -> None:
    """A table edited by hand, or results without their tables, fail here."""
    record = program("data/record.py")
    readme = (RECIPES / name / "README.md").read_text(encoding="utf-8")
    tables = record.tables_of(RECIPES / name)
    assert tables
    assert record.written(readme, tables) == readme


def test_make_recipes_names_scripts_that_record() -> None:
    """Each has the variable, and keeps raw results or has its table between markers."""
    makefile = (RECIPES.parent / "Makefile").read_text(encoding="utf-8")
    lists = re.findall(r"^RECIPES_\w+ := (.+)$", makefile, flags=re.MULTILINE)
    names = " ".join(lists).split()
    assert {"ist/ablate", "continued_bpe/run"} <= set(names)
    for name in names:
        script = (RECIPES / f"{name}.sh").read_text(encoding="utf-8")
        assert "${RECORD:-}" in script and "recipes/data/" in script, name


def test_a_row_replaces_the_one_of_its_key(program, tmp_path: Path) -> None:
    record, file = program("data/record.py"), tmp_path / "results.jsonl"
    key = ("what", "size")
    record.add(file, [{"what": "b", "size": 2, "value": 1}, {"what": "a", "value": 5}], key=key)
    record.add(file, [{"what": "b", "size": 2, "value": 3}], key=key)
    assert [json.loads(line) for line in file.read_text().splitlines()] == [
        {"size": 2, "value": 3, "what": "b"},
        {"value": 5, "what": "a"},
    ]


def test_rows_replace_those_of_their_kind_and_model(program, tmp_path: Path) -> None:
    record, file = program("data/record.py"), tmp_path / "results.jsonl"
    before = [
        {"what": "task", "model": "before", "row": 1},
        {"what": "task", "model": "after", "row": 1},
        {"what": "task", "model": "after", "row": 2},
        {"what": "bits", "row": 1},
    ]
    record.take(file, before)
    record.take(file, [{"what": "task", "model": "after", "row": 3}])
    assert record.read(file) == [
        {"model": "after", "row": 3, "what": "task"},
        {"model": "before", "row": 1, "what": "task"},
        {"row": 1, "what": "bits"},
    ]


def test_counts_are_crossed(program) -> None:
    rows = [
        {"count": "tokens", "tokenizer": "a", "value": 2000},
        {"count": "tokens", "tokenizer": "b", "value": 0},
        {"count": "spanning", "tokenizer": "b", "value": 3},
    ]
    assert program("data/record.py").crossed(rows, "count", "tokenizer").splitlines() == [
        "|  | a | b |",
        "| --- | ---: | ---: |",
        "| tokens | 2,000 | 0 |",
        "| spanning | – | 3 |",
    ]


def test_check_finds_a_table_edited_by_hand(
    program, tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = program("data/record.py")
    (tmp_path / "results.jsonl").write_text('{"n": 3}\n')
    (tmp_path / "tables.py").write_text(
        "def tables(rows):\n    return {'t': f\"{rows[0]['n']}\"}\n"
    )
    readme = tmp_path / "README.md"
    readme.write_text("<!-- t -->\n\n4\n\n<!-- /t -->\n")
    monkeypatch.setattr(sys, "argv", ["record.py", "--check", str(tmp_path)])
    assert record.main() == 1
    assert "differs from its results.jsonl" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["record.py", str(tmp_path)])
    assert record.main() == 0
    assert "\n3\n" in readme.read_text()
    monkeypatch.setattr(sys, "argv", ["record.py", "--check", str(tmp_path)])
    assert record.main() == 0
