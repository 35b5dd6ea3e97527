"""From bytes of a normalized text back to bytes of the text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.tokenizer.token_spans import edges_in_text

NFC = partial(unicodedata.normalize, "NFC")
NFKC = partial(unicodedata.normalize, "NFKC")
LETTERS = "aé\u0301\u0323क\u093c\u0958ে\u09cbৗ\u09d7ﬁ①\u1100\u1161 \n🙂"


def edges(text: str, normalize: Callable[[str], str]) -> list[int] | None:
    """Where every byte of the normalized text ends, in the text."""
    joined = normalize(text).encode()
    found = edges_in_text(text, joined, np.arange(1, len(joined) + 1), normalize)
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab", [1, 2]),
        ("\u0958b", [3, 3, 3, 3, 3, 3, 4]),  # qa: three bytes become ka and nukta, six
        ("\u0958\u0947", [3, 3, 3, 3, 3, 3, 4, 5, 6]),  # the vowel sign behind it does not change
        ("e\u0301 b", [3, 3, 4, 5]),  # three bytes become two
        ("a \u0958 e\u0301", [1, 2, 5, 5, 5, 5, 5, 5, 6, 9, 9]),
        ("", []),
    ],
)
def test_by_hand(text: str, expected: list[int]) -> None:
    """A byte inside of what became of a sign ends behind the sign."""
    assert expected == edges(text, NFC)


def test_what_cannot_be_told_is_none() -> None:
    """Letters of Hangul join across signs; other bytes than the normalized text's are refused."""
    assert edges("\u1100\u1161", NFC) is None
    assert edges_in_text("ab", b"ac", np.array([1, 2]), NFC) is None
    assert edges_in_text("a b", b"_a b", np.array([1, 4]), lambda text: "_" + text) is None


@given(st.text(LETTERS, max_size=20), st.sampled_from([NFC, NFKC]))
def test_where_a_text_can_be_cut_both_parts_are_found(
    text: str, normalize: Callable[[str], str]
) -> None:
    """Wherever the parts of a text normalize on their own, the border is found exactly."""
    found = edges(text, normalize)
    if found is None:
        return
    assert sorted(found) == found
    assert not text or len(text.encode()) == found[-1]
    for cut in range(1, len(text)):
        left, right = text[:cut], text[cut:]
        is_free = right[:1].strip() == "" or unicodedata.category(right[0])[0] != "M"
        if is_free and normalize(left) + normalize(right) == normalize(text):
            assert len(left.encode()) == found[len(normalize(left).encode()) - 1]
