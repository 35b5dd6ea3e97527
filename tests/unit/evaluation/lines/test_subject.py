"""Subjects: loading and unique names."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from vocabshift.evaluation.lines.subject import subject_names, subjects, unique_names


def test_a_name_is_the_last_part() -> None:
    """Paths and Hub names give their last part."""
    paths = [("runs", "ist"), ("meta-llama", "Llama-3.2-1B")]
    assert ["ist", "Llama-3.2-1B"] == unique_names(paths)


def test_a_name_that_is_not_utf_8_can_be_written() -> None:
    """Names of files are bytes; a results file holds UTF-8."""
    assert ["caf\\udce9"] == unique_names([("x", "caf\udce9")])


def test_clashing_names_get_their_parent() -> None:
    """Two folders of one name are told apart by the folders that they lie in."""
    assert ["a/ist", "b/ist", "bpe"] == unique_names([("a", "ist"), ("b", "ist"), ("x", "bpe")])


def test_the_same_path_twice_is_numbered() -> None:
    """What still clashes is numbered, and a number never meets a name that is there."""
    paths = [("ist",), ("ist",), ("ist",)]
    assert ["ist", "ist (2)", "ist (3)"] == unique_names(paths)
    assert ["t", "t (2)", "t (2) (2)"] == unique_names([("t",), ("t",), ("t (2)",)])


def test_values_carry_their_own_name(make_tokenizer) -> None:
    """A Tokenizer is named by itself, one or many; a mapping names what it holds."""
    tokenizer = make_tokenizer(name="ours")
    assert ["ours"] == [subject.name for subject in subjects(tokenizer)]
    assert ["ours", "ours (2)"] == [subject.name for subject in subjects([tokenizer, tokenizer])]
    assert ["x", "y"] == [s.name for s in subjects({"x": tokenizer, "y": tokenizer})]


def test_no_tokenizer_is_refused() -> None:
    """An empty list is an error."""
    with pytest.raises(ValueError, match="no tokenizer is given"):
        subjects([])


def test_folders_are_named_by_path(make_tokenizer, tmp_path: Path, monkeypatch) -> None:
    """A folder's name is its last part, also for "." and with a slash at the end."""
    folder = tmp_path / "runs" / "ist"
    make_tokenizer().save_pretrained(folder)
    monkeypatch.chdir(folder)
    sources = [str(folder) + "/", folder.parent / "ist", "."]
    names = [subject.name for subject in subjects(sources)]
    assert ["runs/ist", "runs/ist (2)", "runs/ist (3)"] == names


def test_fast_tokenizers_are_named_by_where_they_came_from() -> None:
    """A transformers tokenizer knows its Hub name or folder; what knows none is "tokenizer"."""
    loaded = SimpleNamespace(name_or_path="meta-llama/Llama-3.2-1B")
    assert ["Llama-3.2-1B", "tokenizer"] == subject_names([loaded, SimpleNamespace()])
