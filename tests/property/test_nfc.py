"""Texts in normal form C are known, and a tokenizer with NFC gives the ids of `tokenizers`."""

from __future__ import annotations

import functools
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers

from strategies import any_text, examples
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.trainers.byte_level import BpeTrainer

nfc = normalizers.NFC().normalize_str
# Letters and marks that compose, in several scripts and of several combining classes, and others.
SIMPLE = (
    "aAeoukK=>,q1 \u0300\u0301\u0308\u0323\u0327\u0338\u0345\u1dc4"
    "नरडक\u093c\u094d\u09be\u09c7\u09d7\u0bbe\u0bc6\u0bd7\u0bcd\u0cc6\u0cc2\u0cd5かハ\u3099\u309aα"
)
COMPOSED = "ÀÅộệ\u09cb\u0bca\u0bcb\u0cca\u0ccbバᾳ≠\u0929"
# NFC changes these by themselves, or something of Hangul after them is not looked into.
CHANGED = "\u0344\u0958\u2126\u212b\uf900\ufb1d\u1100\u1161\u11a8가각\U0001d15e"


@functools.cache
def encoder() -> Encoder:
    """Of the kind of Qwen's, with a token that may stand before a mark."""
    texts = ["the éclair, naïve and Åland", "लड़की बड़ी है", "বাংলা কোনো", "தமிழ் கொடு"]
    trainer = BpeTrainer(vocab_size=330, pre_tokenizer="qwen2", normalizer="nfc")
    tokenizer = trainer.train(Corpus.from_texts(texts))
    end = AddedToken("<end>", tokenizer.row_count)
    found = Encoder(replace(tokenizer, added_tokens=(end,)))
    assert "core" == found.engine
    return found


@examples(400)
@given(st.text(SIMPLE, max_size=8))
def test_texts_of_what_composes(text: str) -> None:
    assert (nfc(text) == text) == _core.is_nfc(text)


@examples(300)
@given(
    st.lists(st.text(SIMPLE + COMPOSED + CHANGED, max_size=4) | any_text, max_size=4).map("".join)
)
def test_what_nfc_changes_is_never_called_nfc(text: str) -> None:
    assert not _core.is_nfc(text) or text == nfc(text)


@pytest.mark.parametrize(
    "text",
    ["À\u0323", "a\u0300\u0323", "\u0c46\u0c56", "<\u0338", "가\u11a8"],
)
def test_texts_that_nfc_changes(text: str) -> None:
    assert text != nfc(text)
    assert not _core.is_nfc(text)


@pytest.mark.parametrize("block", range(0, 0x30000, 0x4000))
def test_every_character(block: int) -> None:
    """By itself, and what it was composed of."""
    for character in map(chr, range(block, block + 0x4000)):
        if 0xD800 <= ord(character) < 0xE000:
            continue
        is_nfc = _core.is_nfc(character)
        assert not is_nfc or character == nfc(character), hex(ord(character))
        decomposed = unicodedata.normalize("NFD", character)
        assert (
            decomposed == character
            or not _core.is_nfc(decomposed)
            or (nfc(decomposed) == decomposed)
        ), hex(ord(character))


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "a long line of ASCII, and then é",
        "लड़की बड़ी है और क़लम नहीं",
        "বাংলা ভাষা, কোনো",
        "தமிழ் கொடு",
        "한국어",
        "漢字かなガ",
        "😀👩‍👩‍👧",
    ],
)
def test_ordinary_text_is_nfc(text: str) -> None:
    assert _core.is_nfc(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize("threads", [1, 3])
@examples(60)
@given(
    st.lists(
        st.lists(
            st.text(SIMPLE + COMPOSED + CHANGED, max_size=6) | st.sampled_from(["<end>", "बड़ा "]),
            max_size=4,
        ).map("".join),
        max_size=6,
    )
)
def test_ids_are_those_of_tokenizers(threads: int, texts: list[str]) -> None:
    found = encoder()
    backend = found.tokenizer.backend
    expected = [backend.encode(text, add_special_tokens=False).ids for text in texts]
    assert expected == [found.encode(text, add_special_tokens=False).tolist() for text in texts]
    joined = "".join(texts).encode()
    ends = np.cumsum([len(text.encode()) for text in texts], dtype=np.int64)
    starts = ends - [len(text.encode()) for text in texts]
    for ids, offsets in (
        found.encode_batch(texts, threads=threads),
        found.encode_documents(joined, starts, ends, threads=threads),
    ):
        assert [0, *np.cumsum(list(map(len, expected)))] == offsets.tolist()
        assert expected == [part.tolist() for part in np.split(ids, offsets[1:-1])][: len(texts)]
