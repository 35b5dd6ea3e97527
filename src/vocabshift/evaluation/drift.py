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
from vocabshift.evaluation.engine import Engine

Int64 = npt.NDArray[np.int64]


class TokenNumbers:
    """One number for each string of bytes, over the vocabularies of a base and its subjects."""

    def __init__(self, base: Engine) -> None:
        self._number: dict[tuple[bytes, bool], int] = {}
        for key in _keys(base):
            self._number.setdefault(key, len(self._number))
        self.base = self.of(base)

    def of(self, engine: Engine) -> Int64:
        """The number of each id, (row_count,); ids that the base lacks have numbers of their
        own, above all of the base's."""
        here: dict[tuple[bytes, bool], int] = {}
        found = np.empty(engine.row_count, dtype=np.int64)
        for token_id, key in enumerate(_keys(engine)):
            number = self._number.get(key)
            if number is None:
                number = here.setdefault(key, len(self._number) + len(here))
            found[token_id] = number
        return found


Pairs = list[tuple[list[int], list[int]]]
"""The tokens of each line by their numbers: ours and the base's."""


def paired(ours: Counts, numbers: Int64, base: Counts, base_numbers: Int64) -> Pairs:
    """The tokens of every line; `numbers` are what `TokenNumbers` gives for the ids of each."""
    return list(zip(_rows(ours, numbers), _rows(base, base_numbers), strict=True))


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


def _rows(counts: Counts, numbers: Int64) -> list[list[int]]:
    named = numbers[counts.ids].tolist()
    return [named[start:end] for start, end in pairwise(counts.offsets.tolist())]


def _keys(engine: Engine) -> list[tuple[bytes, bool]]:
    special = engine.special_ids
    return [(data, token_id in special) for token_id, data in enumerate(engine.spelled)]
