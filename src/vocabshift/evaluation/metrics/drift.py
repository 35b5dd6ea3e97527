"""How much a tokenizer's segmentation differs from a base's, line by line.

Owns the comparison of two token sequences of one line: their Levenshtein distance (tokens inserted,
deleted or replaced) and whether they are equal. Tokens are equal if they have the same bytes,
whatever their ids; special tokens if they have the same text. Needs rapidfuzz (extra `stats`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from vocabshift.evaluation.lines.counts import Counts, Ints
from vocabshift.evaluation.metrics.metric import Metric, OnText, Ratio, needing

Pairs = list[tuple[list[int], list[int]]]
"""Two token sequences of each line, such as ours and the base's by their hashes."""


def paired(ours: Counts, hashes: Ints, base: Counts, base_hashes: Ints) -> Pairs:
    """The tokens of every line; `hashes` are `TokenFacts.hashes` of the tokenizer of each."""
    return list(zip(_rows(ours, hashes), _rows(base, base_hashes), strict=True))


def edit_distances(pairs: Pairs) -> Ints:
    """Levenshtein distance of the tokens of each line, (n_lines,); ImportError names the extra."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise ImportError(
            "edit distances need rapidfuzz: pip install 'vocabshift[stats]'"
        ) from None
    found = (Levenshtein.distance(one, other) for one, other in pairs)
    return np.fromiter(found, np.int64, len(pairs))


def same_lines(pairs: Pairs) -> Ints:
    """1 for each line that both cut into the same tokens, (n_lines,)."""
    return np.fromiter((one == other for one, other in pairs), np.int64, len(pairs))


def _rows(counts: Counts, hashes: Ints) -> list[list[int]]:
    named = hashes[counts.ids].tolist()
    return [named[start:end] for start, end in pairwise(counts.offsets.tolist())]


def _pairs(on: OnText) -> Pairs:
    # Not `once`: the lists of all languages together would take many times the arrays' memory.
    base = on.base
    assert on.base_hashes is not None, "they come with the base's counts"
    return paired(on.counts, on.token_hashes(), base, on.base_hashes)


METRICS = (
    Metric(
        "levenshtein_distance",
        "drift",
        "edits per line",
        "from the tokens of the base",
        formula=Ratio(lambda on: (edit_distances(_pairs(on)), on.ones)),
        needs=needing("base", "rapidfuzz"),
    ),
    Metric(
        "exact_match_rate",
        "drift",
        "exact match",
        "share of lines cut as by the base",
        formula=Ratio(lambda on: (same_lines(_pairs(on)), on.ones)),
        needs=needing("base"),
    ),
)
