"""Holding documents out: what is learned from and what is judged on never meet."""

from __future__ import annotations

import pytest

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


def test_standard_input_cannot_be_read_twice() -> None:
    """It is refused before anything is read."""
    with pytest.raises(ValueError, match="standard input"):
        hold_out(Corpus.from_specs(["-"]))
