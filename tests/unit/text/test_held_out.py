"""Holding documents out: what is learned from and what is judged on never meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import hold_out


def test_every_document_is_in_one_part() -> None:
    """Language and weight stay; the first document of each source and every fifth are held out."""
    texts = {"en": [f"en {i}" for i in range(12)], "hi": [f"hi {i}" for i in range(3)]}
    corpus = Corpus.from_texts(texts, weights={"hi": 2.0})

    training, held_out = hold_out(corpus, every=5)

    assert list(held_out.texts()) == [
        ("en", "en 0"),
        ("en", "en 5"),
        ("en", "en 10"),
        ("hi", "hi 0"),
    ]
    both = sorted([*training.texts(), *held_out.texts()])
    assert both == sorted(corpus.texts())
    assert {documents.weight for documents in held_out.batches()} == {1.0, 2.0}


def test_sources_of_one_document_are_divided_too(tmp_path: Path) -> None:
    """As `--documents file` with many files gives them: not all of them may be held out."""
    for i in range(7):
        (tmp_path / f"{i}.txt").write_text(f"text {i}", encoding="utf-8")
    specs = [str(tmp_path / f"{i}.txt") for i in range(7)]
    training, held_out = hold_out(Corpus.from_specs(specs, documents="file"), every=5)
    assert [text for _, text in held_out.texts()] == ["text 0", "text 5"]
    assert [text for _, text in training.texts()] == [f"text {i}" for i in (1, 2, 3, 4, 6)]


def test_one_document_cannot_be_divided() -> None:
    """The message says that its text went into the other part."""
    training, _ = hold_out(Corpus.from_texts(["all there is"]))
    with pytest.raises(CorpusError, match="without every 20th document"):
        list(training.texts())


def test_standard_input_cannot_be_read_twice() -> None:
    """It is refused before anything is read."""
    with pytest.raises(ValueError, match="standard input"):
        hold_out(Corpus.from_specs(["-"]))
