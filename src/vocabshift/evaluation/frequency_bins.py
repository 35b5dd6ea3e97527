"""Words by how frequent they are: the bins of `fertility_bin_…`.

A word's rank is one plus the number of words that are more frequent, in the text itself or in a
corpus of its language; words of one frequency have one rank, so that no tie is broken by chance.
Bins are powers of ten of the rank; "unseen" is for words that the corpus does not hold. Words are
whitespace-separated, as they stand: case and punctuation belong to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

BINS = ("1_10", "11_100", "101_1000", "1001_10000", "10001_up", "unseen")
"""Ranks in each bin; the last holds the words that the frequencies do not know."""

_UNSEEN = len(BINS) - 1
_EDGES = np.array([10, 100, 1000, 10_000])


def bins_of_words(frequencies: Mapping[str, int]) -> dict[str, int]:
    """Index into BINS by word."""
    words = list(frequencies)
    counts = np.fromiter(frequencies.values(), np.int64, len(words))
    ascending = np.sort(counts)
    ranks = 1 + len(words) - np.searchsorted(ascending, counts, side="right")
    found = np.searchsorted(_EDGES, ranks, side="left")
    return dict(zip(words, found.tolist(), strict=True))


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def bins_of_lines(lines: Sequence[str], bins: Mapping[str, int]) -> Bytes:
    """Index into BINS of every word of the lines, (n_words,)."""
    found = [bins.get(word, _UNSEEN) for line in lines for word in line.split()]
    return np.array(found, dtype=np.uint8)
