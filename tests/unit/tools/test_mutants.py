"""The table of faults fits the tree: or `tools/mutants.py` would find nothing and say nothing."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import programs
from programs import ROOT

mutants = programs.load("tools/mutants.py")


def test_every_fault_can_be_planted() -> None:
    """In one place, as Python that can be read, and with tests that are there."""
    sources = mutants.read_sources(ROOT)
    table = mutants.read_table()
    wrong = []
    for mutation in table:
        try:
            place = mutants.place_of(mutation, sources)
            mutants.tests_of(mutation, ROOT)
        except mutants.StaleError as error:
            wrong.append(f"{mutation.name}: {error}")
            continue
        assert mutation.old != mutation.new, mutation.name
        if place.suffix == ".py":
            ast.parse(sources[place].replace(mutation.old, mutation.new))
    assert [] == wrong
    assert len(table) >= 100
    assert [] == [name for name, times in Counter(m.name for m in table).items() if times > 1]


@pytest.mark.parametrize("text", ["", "x = 1\nx = 1\n"])
def test_text_that_is_gone_or_there_twice_is_stale(text: str, tmp_path: Path) -> None:
    mutation = mutants.Mutation("a", "b", "x = 1", "x = 2", ("test_none",))
    with pytest.raises(mutants.StaleError, match="times"):
        mutants.place_of(mutation, {tmp_path / "a.py": text})
    with pytest.raises(mutants.StaleError, match="no test file"):
        mutants.tests_of(mutation, tmp_path)


def test_a_fault_is_planted_and_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests see is the fault; what stays is the text as it was."""
    monkeypatch.setattr(mutants.Copy, "__init__", lambda self, folder: None)
    copy = mutants.Copy(tmp_path)
    copy.root = tmp_path
    file = tmp_path / "src" / "a.py"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("")
    file.parent.mkdir()
    file.write_text("x = 1\n")
    seen = []

    def run(tests: list[str]) -> tuple[bool, str]:
        seen.append((file.read_text(), [Path(test).name for test in tests]))
        return len(seen) == 1, ""

    copy.pytest = run
    mutation = mutants.Mutation("a", "b", "x = 1", "x = 2", ("test_a",))
    assert ["survived", "killed"] == [copy.try_out(mutation).result for _ in range(2)]
    assert seen == [("x = 2\n", ["test_a.py"])] * 2
    assert file.read_text() == "x = 1\n"


def test_a_core_is_built_when_tests_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the fault that they must notice, and without one before they look for one of Python."""
    monkeypatch.setattr(mutants.Copy, "__init__", lambda self, folder: None)
    copy = mutants.Copy(tmp_path)
    copy.root = tmp_path
    for name, text in {"cpp/a.h": "one two", "src/a.py": "x = 1", "tests/test_a.py": ""}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    built: list[str] = []
    monkeypatch.setattr(copy, "_build", lambda: built.append((tmp_path / "cpp/a.h").read_text()))
    monkeypatch.setattr(copy, "pytest", lambda tests: (False, ""))
    for old in ("one", "two", "x = 1"):
        copy.try_out(mutants.Mutation("a", "b", old, "x = 2", ("test_a",)))
    assert ["x = 2 two", "one x = 2", "one two"] == built
