"""The key of an input changes with the text, and only where a later process can know it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import hold_out
from vocabshift.text.readers import HubSource, StandardInputSource, input_key, no_key_reason
from vocabshift.text.selection import Part
from vocabshift.text.spec import HubDataset


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    return path


def key(*specs: str, **options: str) -> str:
    found = input_key(Corpus.from_specs(specs, **options))
    assert found is not None
    return found


def test_the_same_files_have_the_same_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are named."""
    before = key(str(file))
    monkeypatch.chdir(file.parent)
    link = file.parent / "b.txt"
    link.symlink_to(file)
    assert before == key("a.txt") == key("./a.txt") == key("b.txt") == key("a*.txt")


def test_whatever_matters_changes_the_key(file: Path) -> None:
    other = file.with_name("b.txt")
    other.write_text("one\ntwo\n", encoding="utf-8")
    keys = [
        key(f"{file}"),
        key(f"en={file}"),
        key(f"hi={file}"),
        key(f"{file}@2"),
        key(f"{file}", documents="file"),
        key(f"{file}", errors="replace"),
        key(f"{other}"),
        key(f"{file}", f"{other}"),
        key(f"{other}", f"{file}"),
    ]
    os.utime(file, ns=(0, 1))
    keys.append(key(f"{file}"))
    file.write_text("one\ntwo\nthree\n", encoding="utf-8")
    os.utime(file, ns=(0, 1))
    keys.append(key(f"{file}"))
    records = file.with_name("c.jsonl")
    records.write_text('{"text": "a", "body": "b"}\n', encoding="utf-8")
    keys += [key(f"{records}"), key(f"{records}:body")]
    assert len(keys) == len(set(keys))


def test_what_is_chosen_changes_the_key(file: Path) -> None:
    corpus = Corpus.from_specs([f"hi={file}"])
    training, held_out = hold_out(corpus)
    keys = [
        input_key(chosen)
        for chosen in (
            corpus,
            corpus.limit_roman_words(1),
            corpus.limit_roman_words(2),
            corpus.limit_bytes(5),
            corpus.limit_bytes(6),
            corpus.limit_bytes(5, seed=1),
            corpus.limit_bytes(5).limit_roman_words(1),
            corpus.limit_roman_words(1).limit_bytes(5),
            training,
            held_out,
        )
    ]
    assert None not in keys
    assert len(keys) == len(set(keys))
    assert input_key(corpus.limit_bytes(5)) == keys[3]


def test_a_new_file_in_a_folder_changes_the_key(file: Path) -> None:
    before = key(str(file.parent))
    file.with_name("b.txt").write_text("more\n", encoding="utf-8")
    assert before != key(str(file.parent))


def test_a_file_name_that_is_not_utf8_has_a_key(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt"))
    path.write_text("one\n", encoding="utf-8")
    assert key(str(tmp_path))


def test_what_a_later_process_cannot_know_has_no_key(file: Path) -> None:
    pytest.importorskip("datasets")
    parts = Corpus.from_specs([str(file)]).parts
    hub = Part(HubSource(HubDataset("a/b")))
    for part, reason in (
        (Part(StandardInputSource()), "standard input is gone"),
        (hub, "hf:a/b::train:text may change"),
        (Corpus.from_texts(["one"]).parts[0], "in memory only"),
    ):
        corpus = Corpus([*parts, part])
        assert input_key(corpus) is None
        assert reason in str(no_key_reason(corpus))
    assert no_key_reason(Corpus(parts)) is None
