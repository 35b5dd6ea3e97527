"""Initializers written plainly, one token at a time: what the fast ones are held against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def weighted(pieces: Sequence[int], lengths: dict[int, int], old: Matrix) -> Matrix:
    """fvt-weighted: the mean of the rows of all bytes of a token."""
    rows = [old[piece] for piece in pieces for _ in range(lengths[piece])]
    return np.mean(rows, axis=0)


def pursuit(target: Matrix, atoms: Matrix, n_atoms: int) -> dict[int, float]:
    """Orthogonal matching pursuit by the book: the best aligned atom, then least squares anew."""
    chosen: list[int] = []
    values: Matrix = np.zeros(0)
    rest = target
    while len(chosen) < n_atoms and np.linalg.norm(rest) > 1e-9 * np.linalg.norm(target):
        nearness = np.abs(atoms @ rest) / np.linalg.norm(atoms, axis=1)
        nearness[chosen] = -1
        chosen.append(int(nearness.argmax()))
        values = np.linalg.lstsq(atoms[chosen].T, target, rcond=None)[0]
        rest = target - values @ atoms[chosen]
    return dict(zip(chosen, values.tolist(), strict=True))


def sparsemax(scores: Sequence[float]) -> list[float]:
    """The simplex threshold, found by trying every size of the support."""
    ordered = sorted(scores, reverse=True)
    threshold = 0.0
    for size in range(1, len(ordered) + 1):
        if 1 + size * ordered[size - 1] > sum(ordered[:size]):
            threshold = (sum(ordered[:size]) - 1) / size
    return [max(score - threshold, 0.0) for score in scores]


def neighbours(documents: Sequence[Sequence[int]], window: int) -> Counter[tuple[int, int]]:
    """How often b stands at most `window` tokens behind a."""
    counts: Counter[tuple[int, int]] = Counter()
    for ids in documents:
        for place, first in enumerate(ids):
            for second in ids[place + 1 : place + 1 + window]:
                counts[first, second] += 1
    return counts


def ppmi(counts: Counter[tuple[int, int]], size: int) -> Matrix:
    """Positive pointwise mutual information of neighbours in either order, as a whole matrix."""
    together = np.zeros((size, size))
    for (first, second), count in counts.items():
        together[first, second] += count
        together[second, first] += count
    total, alone = together.sum(), together.sum(1)
    matrix = np.zeros((size, size))
    for a in range(size):
        for b in range(size):
            if together[a, b]:
                matrix[a, b] = max(np.log(together[a, b] * total / (alone[a] * alone[b])), 0)
    return matrix
