"""The printable image of bytes: one token at a time, and many at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.tokenizer import byte_level


@given(st.lists(st.binary(max_size=9), max_size=9))
def test_many_at_once_are_spelled_as_one_by_one(tokens: list[bytes]) -> None:
    images = [byte_level.to_image(token) for token in tokens]
    assert byte_level.all_to_images(tokens) == images
    assert byte_level.all_to_bytes(images) == [byte_level.to_bytes(image) for image in images]
    assert byte_level.all_to_bytes(images) == tokens


def test_every_byte_has_an_image() -> None:
    every = [bytes([byte]) for byte in range(256)]
    assert sorted(byte_level.all_to_images(every)) == list(byte_level.ALPHABET)
    with pytest.raises(KeyError):
        byte_level.all_to_bytes(["a", " "])
