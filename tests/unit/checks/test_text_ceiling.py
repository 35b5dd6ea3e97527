"""Bytes per pre-token, by language, through the tokenizer's own pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_text import eval_lines, vendor
from strategies import documents, examples
from vocabshift.checks.text import ceilings
from vocabshift.errors import InvalidTokenizerError
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import get_pattern, to_spec
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

Make = Callable[..., Tokenizer]
PIECES = to_spec(get_pattern("gpt2"))


def test_bytes_of_raw_text_for_each_pre_token(make_byte_level: Make) -> None:
    base = make_byte_level("ab", pre_tokenizer=PIECES)
    corpus = Corpus.from_texts({"en": ["ab cd", "e"], "hi": ["कि"]})
    assert {"en": 6 / 3, "hi": 6 / 2} == ceilings(base, corpus, threads=2)
    assert {"unlabelled": 2.5} == ceilings(base, Corpus.from_texts(["ab cd"]))


def test_normalizer_and_added_tokens(make_byte_level: Make) -> None:
    """Bytes are those before the normalizer; an added token is a pre-token of its own."""
    base = make_byte_level("ab", pre_tokenizer=PIECES, normalizer={"type": "NFC"})
    assert {"unlabelled": 3.0} == ceilings(base, Corpus.from_texts(["e\u0301"]))
    added = (AddedToken("<x>", base.row_count),)
    with_added = dataclasses.replace(base, added_tokens=added)
    assert {"unlabelled": 7 / 3} == ceilings(with_added, Corpus.from_texts(["ab<x>cd"]))


def test_any_pre_tokenizer(make_byte_level: Make) -> None:
    digits = {"type": "Digits", "individual_digits": True}
    spec = {"type": "Sequence", "pretokenizers": [digits, to_spec(())["pretokenizers"][0]]}
    base = make_byte_level("ab", pre_tokenizer=spec)
    assert {"unlabelled": 5 / 3} == ceilings(base, Corpus.from_texts(["ab1 2"[:3] + "cd"]))


def test_byte_level_tokens_that_are_given_text(make_byte_level: Make) -> None:
    """Only its decoder says ByteLevel: the pieces are no images of bytes."""
    base = make_byte_level("ab", pre_tokenizer={"type": "Digits", "individual_digits": True})
    with pytest.raises(InvalidTokenizerError, match="give it the step ByteLevel"):
        ceilings(base, Corpus.from_texts(["ab व"]))


def test_text_that_a_normalizer_removes_has_no_ceiling(make_byte_level: Make) -> None:
    strips = {"type": "Strip", "strip_left": True, "strip_right": True}
    base = make_byte_level("ab", pre_tokenizer=PIECES, normalizer=strips)
    assert {"b": 1.0} == ceilings(base, Corpus.from_texts({"a": ["   "], "b": ["a"]}))


def test_groups_of_sentencepiece(make_metaspace: Make) -> None:
    found = ceilings(make_metaspace("ab"), Corpus.from_texts({"en": ["ab ab c"], "x": ["ab"]}))
    assert {"en": 7 / 3, "x": 2.0} == found


def test_another_kind_of_tokenizer_has_none() -> None:
    plain = Tokenizer(BpeModel({"a": 0, "<unk>": 1}, (), unk_token="<unk>"))
    assert ceilings(plain, Corpus.from_texts(["a"])) is None


FULL = Tokenizer(
    BpeModel({image: i for i, image in enumerate(byte_level.ALPHABET)}, ()),
    pre_tokenizer=to_spec(get_pattern("cl100k")),
)


@examples(60)
@given(texts=documents(), threads=st.integers(1, 3))
def test_every_pre_token_counts_once(texts: list[str], threads: int) -> None:
    """As many as `tokenizers` cuts."""
    pieces = FULL.backend.pre_tokenizer
    n_words = sum(len(pieces.pre_tokenize_str(text)) for text in texts)
    n_bytes = sum(len(text.encode()) for text in texts)
    assert {"unlabelled": n_bytes / n_words} == ceilings(
        FULL, Corpus.from_texts(texts), threads=threads
    )


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "language", "expected"),
    [
        ("llama3", "hi", 5.23),
        ("llama3", "ta", 5.78),
        ("qwen25", "ta", 5.75),
        ("mistral-nemo", "hi", 11.59),
        ("mistral-nemo", "ta", 20.20),
    ],
)
def test_vendor_tokenizers(shared_data: Path, name: str, language: str, expected: float) -> None:
    """No text beats it."""
    tokenizer = vendor(shared_data / "tokenizers-hf" / name)
    lines = eval_lines(shared_data)[f"sib200-flores/{language}.txt"][:-1]
    found = ceilings(tokenizer, Corpus.from_texts({language: lines}))
    assert found is not None
    assert expected == pytest.approx(found[language], abs=0.005)
    ids, _ = Encoder(tokenizer).encode_batch(lines)
    assert sum(len(line.encode()) for line in lines) / len(ids) <= found[language]
