"""What goes first, on a vocabulary small enough to do by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vocabshift.pruning.orders import Vocabulary, removal_order
from vocabshift.tokenizer.splits import NONE, Splits


@pytest.fixture
def vocabulary() -> Vocabulary:
    """The atoms a, b and c (0 to 2), then ab, abc and ca."""
    left = np.array([NONE, NONE, NONE, 0, 3, 2])
    right = np.array([NONE, NONE, NONE, 1, 2, 0])
    atomic = np.arange(6) < 3
    rank = np.array([NONE, NONE, NONE, 0, 1, 2])
    return Vocabulary(
        Splits(left, right, atomic, np.zeros(6, dtype=bool), rank),
        ~atomic,
        np.array([1, 1, 1, 2, 3, 2]),
        np.zeros(6, dtype=np.int64),
    )


def test_frequency_counts_tokens_in_the_end_and_leaf_frequency_those_on_the_way(
    vocabulary: Vocabulary,
) -> None:
    """ "ab" is there 10 times in the end, and 40 times on the way to "abc".

    With the same counts for both, one of the two orders would be the other under its name.
    """
    counts = np.array([9, 9, 9, 10, 40, 45])
    assert [4, 3, 5] == removal_order("frequency", vocabulary, counts).ids.tolist()
    assert [4, 5, 3] == removal_order("leaf-frequency", vocabulary, counts).ids.tolist()
