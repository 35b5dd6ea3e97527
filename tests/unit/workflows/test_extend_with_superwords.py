"""Words, then superwords, on a tokenizer that exists."""

from __future__ import annotations

from pathlib import Path

import pytest

import vocabshift as vs
from vocabshift.extension.options import ExtensionOptions
from vocabshift.workflows.extend import extend_to_folder

TEXTS = {
    "en": ["the cat sat on the mat", "the dog sat on the mat", "a cat sat on the chair"],
    "fi": ["kissa istui matolla", "koira istui matolla", "kissa istui tuolilla"],
}


def test_words_then_superwords(tmp_path: Path) -> None:
    """Ids of the base stay, superwords stand behind the new words, every language is told."""
    corpus = vs.Corpus.from_texts(TEXTS)
    base = vs.BpeTrainer(vocab_size=280, pre_tokenizer="cl100k").train(
        vs.Corpus.from_texts(TEXTS["en"])
    )
    result = extend_to_folder(
        base, corpus, ExtensionOptions(n_tokens=10), tmp_path / "out", n_superwords=4
    )

    longer = vs.load_tokenizer(tmp_path / "out")
    assert result["n_added"] == 10
    assert result["superwords"] == 4
    assert longer.row_count == base.row_count + 14
    assert {**longer.model.vocab, **base.model.vocab} == longer.model.vocab
    rows = {row["language"]: row for row in result["superword_effect"]["languages"]}
    assert set(rows) == {"en", "fi"}
    for row in rows.values():
        assert row["bytes_per_token"] >= row["bytes_per_token_before"]
    assert 0 < len(vs.check(longer).superwords) <= 4
    for text in [*TEXTS["en"], *TEXTS["fi"]]:
        encoder = vs.Encoder(longer)
        assert encoder.decode(encoder.encode(text)) == text


def test_a_tokenizer_that_cannot_have_superwords_is_refused_first(tmp_path: Path) -> None:
    """Before a word is learned."""
    from dataclasses import replace

    base = vs.BpeTrainer(vocab_size=280).train(vs.Corpus.from_texts(TEXTS["en"]))
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    other = replace(base, normalizer=space, pre_tokenizer=None, decoder=None)
    with pytest.raises(ValueError, match="byte-level"):
        extend_to_folder(
            other,
            vs.Corpus.from_texts(TEXTS),
            ExtensionOptions(n_tokens=10),
            tmp_path / "out",
            n_superwords=4,
        )
