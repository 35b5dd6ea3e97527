"""Words, then superwords, on a tokenizer that exists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import vocabshift as vs
from vocabshift.checks.vocabulary import bytes_per_token
from vocabshift.extension.options import ExtensionOptions
from vocabshift.trainers.on_top import SuperwordsOnTopTrainer
from vocabshift.workflows.extend import extend_to_folder
from vocabshift.workflows.extend_with_superwords import extend_with_superwords

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


def test_superwords_are_those_of_the_trainer_on_the_new_words() -> None:
    """With the same weights of languages; the map leads from the tokenizer that was given."""
    corpus = vs.Corpus.from_texts({"en": TEXTS["en"] * 20, "fi": ["kissa istui"] * 3})
    base = vs.BpeTrainer(vocab_size=270, pre_tokenizer="cl100k").train(corpus)
    options = ExtensionOptions(n_tokens=10, sampling_alpha=0.1)
    found = extend_with_superwords(base, corpus, options, n_superwords=1)
    trainer = SuperwordsOnTopTrainer(base=found.words.tokenizer, n_tokens=1, sampling_alpha=0.1)
    assert found.tokenizer.model.merges == trainer.train(corpus).model.merges
    other = replace(trainer, sampling_alpha=None).train(corpus)
    assert found.tokenizer.model.merges != other.model.merges
    assert found.bytes_per_token_before == bytes_per_token(found.words.tokenizer, corpus)
    assert (base.row_count, base.row_count + 11) == (
        len(found.id_map.old_to_new),
        found.id_map.new_size,
    )


def test_a_pattern_of_llama_cpp_does_not_go_with_superwords() -> None:
    """Lifted, it is none that llama.cpp has."""
    base = vs.BpeTrainer(vocab_size=270, pre_tokenizer="qwen2").train(vs.Corpus.from_texts(TEXTS))
    with pytest.raises(ValueError, match="'qwen35' does not go with superwords"):
        extend_with_superwords(
            base,
            vs.Corpus.from_texts(TEXTS),
            ExtensionOptions(n_tokens=5, pre_tokenizer="qwen35"),
            n_superwords=2,
        )


def test_a_tokenizer_that_cannot_have_superwords_is_refused_first(tmp_path: Path) -> None:
    """Before a word is learned."""
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
