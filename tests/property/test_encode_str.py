"""A list of str is encoded as the UTF-8 that Python makes of it, however the str keeps its text."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.trainers.byte_level import BpeTrainer

# One, two and four bytes a character, with ASCII alone and between the others.
HIGHEST = ("\x7f", "\xff", "\u07ff", "\ud7ff", "\U0010ffff")
CHARACTERS = st.one_of(
    st.sampled_from(" a\n<"),
    *(st.characters(max_codepoint=ord(c), exclude_categories=["Cs"]) for c in HIGHEST),
)
TEXTS = st.lists(st.text(CHARACTERS, max_size=40), max_size=6)


@functools.cache
def encoder() -> Encoder:
    """Of single bytes, so that ids are bytes."""
    return Encoder(BpeTrainer(vocab_size=256).train(Corpus.from_texts({"en": ["ab"]})))


def bytes_of(ids: np.ndarray) -> bytes:
    """What tokens of one byte each spell."""
    from vocabshift.tokenizer.token_bytes import token_bytes

    spelt = token_bytes(encoder().tokenizer)
    return b"".join(spelt[int(i)] for i in ids)


@examples(400)
@given(TEXTS, st.sampled_from([1, 2]))
def test_ids_spell_the_utf8_of_the_text(texts: list[str], threads: int) -> None:
    ids, offsets = encoder().encode_batch(texts, threads=threads)
    for i, text in enumerate(texts):
        assert bytes_of(ids[offsets[i] : offsets[i + 1]]) == text.encode()


@examples(100)
@given(TEXTS)
def test_utf8_that_a_str_keeps_is_taken_as_it_is(texts: list[str]) -> None:
    for text in texts:
        encoder().encode(text)  # asks the str for its UTF-8, which it then keeps
    ids, _ = encoder().encode_batch(texts)
    assert bytes_of(ids) == "".join(texts).encode()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("before", [0, 3, 7, 8, 9, 30])
def test_half_a_surrogate_pair_is_told_wherever_it_stands(before: int, threads: int) -> None:
    good = ["क ख" * 3000, "plain", "é" * 20] * 20
    for half in ("\ud800", "\udfff"):
        for behind in ("", "x", "अ" * 9, "\U0001f600"):
            bad = "त" * before + half + behind
            with pytest.raises(UnicodeEncodeError) as caught:
                encoder().encode_batch([*good, bad, *good, "other \udc00"], threads=threads)
            assert caught.value.object == bad
