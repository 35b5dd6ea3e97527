"""Baselines for SentencePiece BPE: SentencePiece's own trainer, asked as the base was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from vocabshift.errors import CorpusError
from vocabshift.extension.baselines import (
    Auxiliary,
    add_tokens,
    append,
    naive_extension,
    regen,
    train_sentencepiece_auxiliary,
)
from vocabshift.extension.report import extension_cost
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.components import SentencePieceRules
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer

Make = Callable[..., Tokenizer]
pytest.importorskip("sentencepiece")
CORPUS = Corpus.from_texts(["abba abba ab12 ab12 zz", "abba zz ﬁ", ""])


@pytest.fixture
def base(make_metaspace: Make) -> Tokenizer:
    return make_metaspace("▁ab")


def test_pieces_obey_the_rules_of_the_base(base: Tokenizer) -> None:
    """By default every digit is a piece by itself; all characters are tokens."""
    tokens = train_sentencepiece_auxiliary(base, CORPUS).tokens
    assert {"▁abba", "▁zz", "1", "2", "ﬁ"} <= set(tokens)
    assert not any(len(token) > 1 and not token.isalpha() and "1" in token for token in tokens)
    loose = SentencePieceRules(split_digits=False, split_by_script=False, split_by_number=False)
    by_argument = train_sentencepiece_auxiliary(base, CORPUS, rules=loose).tokens
    by_model = train_sentencepiece_auxiliary(replace(base, piece_rules=loose), CORPUS).tokens
    assert by_argument == by_model
    assert "▁ab12" in by_argument


def test_text_can_be_normalized_first(base: Tokenizer) -> None:
    tokens = train_sentencepiece_auxiliary(base, CORPUS, normalizer="nfkc").tokens
    assert "ﬁ" not in tokens
    assert "▁fi" in tokens


def test_the_size_counts_roles_and_bytes(base: Tokenizer) -> None:
    assert 10 == len(train_sentencepiece_auxiliary(base, CORPUS, vocab_size=269).tokens)


def test_threads_change_nothing(base: Tokenizer) -> None:
    one, three = (train_sentencepiece_auxiliary(base, CORPUS, threads=n) for n in (1, 3))
    assert one == three


def test_the_baselines_take_it(base: Tokenizer) -> None:
    auxiliary = train_sentencepiece_auxiliary(base, CORPUS)
    learned = regen(base, auxiliary, n_tokens=1_000)
    assert "no_token_left" == learned.stopped_because
    longer = naive_extension(base, auxiliary, "prepend", n_tokens=1_000)
    assert {"unlabelled": 0} == extension_cost(base, longer, CORPUS).lost_lines
    text = "abba zz"
    assert longer.backend.encode(text).ids == Encoder(longer).encode(text).tolist()
    with pytest.raises(ValueError, match="compare with regen or prepend"):
        append(base, auxiliary, n_tokens=3)


def test_added_tokens_are_spelt_as_text(base: Tokenizer) -> None:
    """With the space that stood for "▁", which the normalizer turns into two."""
    longer = add_tokens(base, Auxiliary(("▁abba", "zz"), ()), n_tokens=2)
    assert [" abba", "zz"] == [token.content for token in longer.added_tokens[-2:]]
    assert longer.backend.encode("zz abba").ids == Encoder(longer).encode("zz abba").tolist()


@pytest.mark.parametrize("texts", [[""], ["\u2581"]])
def test_text_without_anything_in_it(base: Tokenizer, texts: list[str]) -> None:
    with pytest.raises(CorpusError):
        train_sentencepiece_auxiliary(base, Corpus.from_texts(texts))


def test_a_byte_level_base_is_refused(make_byte_level: Make) -> None:
    with pytest.raises(ValueError, match="does not spell the space"):
        train_sentencepiece_auxiliary(make_byte_level("ab"), CORPUS)


def test_without_the_package(base: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ValueError, match="pip install sentencepiece"):
        train_sentencepiece_auxiliary(base, CORPUS)
