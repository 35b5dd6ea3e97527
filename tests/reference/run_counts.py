"""Borders and runs written plainly: every pair of neighbours is counted, then every piece is cut.

Source: docs/algorithms/superwords.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence

Pair = tuple[int, int]


def borders(pieces: Iterable[tuple[Sequence[int], int]]) -> Counter[Pair]:
    """How often tokens are neighbours, for pieces with their weights."""
    counts: Counter[Pair] = Counter()
    for ids, weight in pieces:
        for i in range(len(ids) - 1):
            counts[ids[i], ids[i + 1]] += weight
    return counts


def runs(
    pieces: Iterable[Sequence[int]], frequent: Container[Pair], never: Container[int] = ()
) -> Counter[tuple[int, ...]]:
    """What is left between borders that are not frequent and beside tokens that never merge."""
    counts: Counter[tuple[int, ...]] = Counter()
    for ids in pieces:
        run: list[int] = []
        for token in ids:
            is_joined = run and (run[-1], token) in frequent
            if not is_joined or run[-1] in never or token in never:
                counts[tuple(run)] += len(run) > 1
                run = []
            run.append(token)
        counts[tuple(run)] += len(run) > 1
    return +counts
