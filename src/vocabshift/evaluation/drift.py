"""How far a tokenizer's cuts lie from a base's, line by line.

Owns the comparison of two token sequences of one line: their Levenshtein distance (tokens put in,
taken out or replaced) and whether they are the same. Tokens are the same where they stand for the
same bytes, whatever their ids; special tokens by how they are written. Needs rapidfuzz (extra
`stats`). Knows nothing of ratios.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.counts import Counts

Int64 = npt.NDArray[np.int64]


Pairs = list[tuple[list[int], list[int]]]
"""The tokens of each line by their hashes: ours and the base's."""


def paired(ours: Counts, hashes: Int64, base: Counts, base_hashes: Int64) -> Pairs:
    """The tokens of every line; `hashes` are `TokenFacts.hashes` of the tokenizer of each."""
    return list(zip(_rows(ours, hashes), _rows(base, base_hashes), strict=True))


def distances(pairs: Pairs) -> Int64:
    """Levenshtein distance of the tokens of each line, (n_lines,); ImportError names the extra."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise ImportError(
            "levenshtein_distance needs rapidfuzz: pip install 'vocabshift[stats]'"
        ) from None
    found = (Levenshtein.distance(one, other) for one, other in pairs)
    return np.fromiter(found, np.int64, len(pairs))


def same_lines(pairs: Pairs) -> Int64:
    """1 for each line that both cut into the same tokens, (n_lines,)."""
    return np.fromiter((one == other for one, other in pairs), np.int64, len(pairs))


def _rows(counts: Counts, hashes: Int64) -> list[list[int]]:
    named = hashes[counts.ids].tolist()
    return [named[start:end] for start, end in pairwise(counts.offsets.tolist())]
