"""Stacking written plainly: a token goes on top when the merges below leave it as two parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Merge = tuple[bytes, bytes]


def encode(token: bytes, merges: Sequence[Merge]) -> list[bytes]:
    """Parts of a token: the lowest rank first, the leftmost of these."""
    parts = [token[i : i + 1] for i in range(len(token))]
    rank = {pair: place for place, pair in enumerate(merges)}
    while found := [(rank[p], at) for at, p in enumerate(pairwise(parts)) if p in rank]:
        _, at = min(found)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def push(merges: list[Merge], token: bytes) -> int:
    """Adds the merge of `token` where two parts are left; the number of parts."""
    parts = encode(token, merges)
    if len(parts) == 2:
        merges.append((parts[0], parts[1]))
    return len(parts)


def stack(lists: Sequence[tuple[Sequence[bytes], int]], total: int) -> list[Merge]:
    """Merges from lists with budgets, in order; what is left of `total` goes to the lists again."""
    merges: list[Merge] = []
    waiting = [list(tokens) for tokens, _ in lists]
    for budgets in ([budget for _, budget in lists], [total] * len(lists)):
        for tokens, budget in zip(waiting, budgets, strict=True):
            end = min(len(merges) + budget, total)
            while tokens and len(merges) < end:
                push(merges, tokens.pop(0))
    return merges
