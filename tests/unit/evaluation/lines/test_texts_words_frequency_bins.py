"""Words by how frequent they are."""

from __future__ import annotations

import random

from reference import metrics as slow
from vocabshift.evaluation.lines.texts import BINS, bins_of_lines, bins_of_words, count_words


def test_ranks_are_shared_by_ties() -> None:
    """Words of one frequency fall into one bin: the one of the best rank among them."""
    words = [f"w{n}" for n in range(400) for _ in range(1 + (n < 8) * (400 - n))]
    bins = bins_of_words(count_words([" ".join(words)]))
    ranks = slow.ranks(words)
    assert {9} == {ranks[f"w{n}"] for n in range(8, 400)}
    assert {"1_10"} == {BINS[number] for number in bins.values()}


def test_bins_are_powers_of_ten() -> None:
    """Each bin ends at a power of ten of the rank."""
    random.seed(1)
    words = [f"w{n}" for n in range(1500) for _ in range(1500 - n)]
    bins = bins_of_words(count_words(words))
    assert ["1_10", "11_100", "101_1000", "1001_10000"] == [
        BINS[bins[f"w{n}"]] for n in (9, 10, 999, 1000)
    ]
    for word, rank in slow.ranks(words[-3000:]).items():
        assert rank <= 1500 and word in bins
    assert 4 == bins_of_words({f"w{n}": 20_000 - n for n in range(12_000)})["w10000"]


def test_words_of_lines() -> None:
    """Every word of the lines has its bin; what the frequencies do not know is unseen."""
    bins = bins_of_words({"a": 3, "b": 1})
    assert [0, 0, 5, 0] == bins_of_lines(["a  b", " c\ta "], bins).tolist()
