"""Leaves first: a token goes only when nothing that stays is made of it.

Owns two ways to take tokens out in a wished order without making a token that stays unreachable:
`when_free` lets a token wait until everything made of it has gone, `dependents_first` sends what
is made of it ahead. Source of the first: "Teaching Old Tokenizers New Words", section 4. Knows
nothing of why tokens are wished away in that order.

Bytes and special tokens never stand in the order. That does not move the others: a byte is made
of nothing, so taking it out would free nobody.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from vocabshift.bpe.splits import NONE, Flags, Ids, Splits


def when_free(wish: NDArray[np.int64], splits: Splits, removable: Flags) -> Ids:
    """Ids in the order of removal: of all leaves the one with the least `wish`, again and again.

    `wish` (rows,): every removable id has another one. `removable`: nothing that a token outside
    it is made of.
    """
    users = splits.users().tolist()
    left, right = splits.left.tolist(), splits.right.tolist()
    may_go = removable.tolist()
    wish_of = wish.tolist()
    id_of = {wish_of[i]: i for i in np.flatnonzero(removable).tolist()}
    heap = [wish_of[i] for i in id_of.values() if users[i] == 0]
    heapq.heapify(heap)
    order = []
    while heap:
        token = id_of[heapq.heappop(heap)]
        order.append(token)
        for half in (left[token], right[token]):
            if half != NONE:
                users[half] -= 1
                if users[half] == 0 and may_go[half]:
                    heapq.heappush(heap, wish_of[half])
    return np.array(order, dtype=np.int64)


def dependents_first(wish: NDArray[np.int64], splits: Splits, removable: Flags) -> Ids:
    """Ids by their `wish`, each right behind what is made of it."""
    candidates = np.flatnonzero(removable)
    by_wish = candidates[np.argsort(wish[candidates], kind="stable")].tolist()
    made_of: dict[int, list[int]] = {}
    for token in by_wish:
        for half in (int(splits.left[token]), int(splits.right[token])):
            if half != NONE:
                made_of.setdefault(half, []).append(token)
    gone: set[int] = set()
    order = []
    for first in by_wish:
        waiting = [first]
        while waiting:
            token = waiting[-1]
            ahead = [other for other in made_of.pop(token, ()) if other not in gone]
            if ahead:
                waiting += reversed(ahead)
                continue
            waiting.pop()
            if token not in gone:
                gone.add(token)
                order.append(token)
    return np.array(order, dtype=np.int64)
