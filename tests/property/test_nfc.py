"""The core's normal form C, and the ids of a tokenizer with that normalizer, are `tokenizers`'."""

from __future__ import annotations

import functools
import random
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import normalizers

from strategies import any_text, examples
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.trainers.byte_level import BpeTrainer

nfc = normalizers.NFC().normalize_str
decompose = functools.partial(unicodedata.normalize, "NFD")
# Letters and marks that compose, in several scripts and of several combining classes, and others.
SIMPLE = (
    "aAeoukK=>,q1 \u0300\u0301\u0308\u0323\u0327\u0338\u0345\u1dc4"
    "नरडक\u093c\u094d\u09be\u09c7\u09d7\u0bbe\u0bc6\u0bd7\u0bcd\u0cc6\u0cc2\u0cd5かハ\u3099\u309aα"
)
COMPOSED = "ÀÅộệ\u09cb\u0bca\u0bcb\u0cca\u0ccbバᾳ≠\u0929"
CHANGED = "\u0344\u0958\u2126\u212b\uf900\ufb1d\u1100\u1161\u11a8가각\U0001d15e"
KNOWN = set(SIMPLE + COMPOSED + CHANGED)


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


@examples(600)
@given(
    st.lists(st.text(SIMPLE + COMPOSED + CHANGED, max_size=4) | any_text, max_size=5).map("".join)
)
@example("À\u0323")
@example("a\u0300\u0323")
@example("\u0c46\u0c56")
@example("<\u0338")
@example("가\u11a8\u11a8")
@example("각\u11a8")
@example("x\u0323\u0344")
@example("नa\u1dc4\u0334\u0323\u0301\u0345\u0323")
@example("\u0301a\u0323\U0002fa1d")
def test_texts_of_what_composes(text: str) -> None:
    normal = _core.to_nfc(text)
    assert nfc(text) == normal or (normal is None and not KNOWN.issuperset(text))


def test_long_runs_of_marks() -> None:
    text = "".join(random.Random(0).choices("\u0301\u0323\u0308\u0334\u093c\u3099", k=100_000))
    assert nfc("e" + text + "가") == _core.to_nfc("e" + text + "가")


SCALARS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
SECONDS = "\u0300\u0323\u0338\u0345\u093c\u09be\u09d7\u0bbe\u0dca\u1161\u11a8\u1b35\u3099"


@pytest.mark.parametrize("block", range(0, len(SCALARS), 0x4000))
def test_every_character(block: int) -> None:
    """By itself, between others, and what it was composed of."""
    for character in SCALARS[block : block + 0x4000]:
        if unicodedata.category(character) in ("Cn", "Co"):
            continue
        texts = (character, f"aक{character}\u0323\u0301", decompose(character))
        normal = [_core.to_nfc(text) for text in texts]
        # The tables of `tokenizers` are of Unicode 9: it has no classes for younger marks.
        is_young = unicodedata.ucd_3_2_0.category(character) == "Cn"
        if is_young and unicodedata.category(character) in ("Mn", "Mc", "Lo"):
            normal = [new or nfc(text) for new, text in zip(normal, texts, strict=True)]
        assert list(map(nfc, texts)) == normal, ascii(character)


def test_few_characters_are_left_to_tokenizers() -> None:
    """Of those that are assigned."""
    assigned = [c for c in SCALARS if unicodedata.ucd_3_2_0.category(c) != "Cn"]
    assert _core.to_nfc("".join(assigned)) is not None
    younger = [c for c in SCALARS if unicodedata.category(c) != "Cn" and _core.to_nfc(c) is None]
    assert 101 >= len(younger)


def test_pairs_of_what_composes() -> None:
    """Every character that composes, after every other; and before what composes with many."""
    pairs = [text for text in map(decompose, SCALARS[:0xAC00]) if len(text) > 1]
    firsts, seconds = ({text[at] for text in pairs} for at in (0, -1))
    for second in sorted(seconds | set(SECONDS)):
        text = "".join(first + second for first in sorted(firsts | seconds) if first < "\U00011930")
        assert nfc(text) == _core.to_nfc(text) or second >= "\U00011930"


@pytest.mark.parametrize("character", ["\u0378", "\U00011938", "\U0001faef", "\U00016ff0"])
def test_what_no_table_knows_is_left_to_tokenizers(character: str) -> None:
    """Among what is changed; `encode` and `encode_batch` take the other way for it."""
    assert _core.to_nfc(f"e\u0301{character}") is None
    found = encoder()
    texts = [f"the e\u0301<end>{character}\u0301", "the"]
    expected = [found.tokenizer.backend.encode(text).ids for text in texts]
    assert expected == [found.encode(text).tolist() for text in texts]
    assert [*expected[0], *expected[1]] == found.encode_batch(texts)[0].tolist()


@pytest.mark.parametrize(
    "text", ["plain", "a long line of ASCII, and then é", "লড়কী বাংলা ভাষা, কোনো", "한국어", "😀👩‍👩‍👧"]
)
def test_text_that_is_normal_stays(text: str) -> None:
    text = unicodedata.normalize("NFC", text)
    assert text == _core.to_nfc(text)


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
