"""The order in which tokens are removed: a score for each token, and the tie-break.

Owns the orders by name, and two ways to remove tokens in an order without making a remaining token
unreachable: `when_free` delays a token until everything made of it is removed, `dependents_first`
removes everything made of it before it. Bytes and special tokens are not in the order. That does
not change the positions of the others: a byte is made of nothing, so removing it frees no token.
Source: "Teaching Old Tokenizers New Words", section 4 and appendix A; the exact rules are in
docs/algorithms/pruning.md. Where the paper's toolkit removes the parts of a token that stays
(frequency, id), ours waits or removes the whole token first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from vocabshift.tokenizer.splits import NONE, Flags, Int64s, Splits


def when_free(priority: Int64s, splits: Splits, removable: Flags) -> Int64s:
    """Ids in the order of removal: again and again, of all leaves the one of the least `priority`.

    `priority` (rows,): every removable id has another one. `removable`: nothing that a token
    outside it is made of.
    """
    users = splits.users().tolist()
    left, right = splits.left.tolist(), splits.right.tolist()
    may_go = removable.tolist()
    priority_of = priority.tolist()
    id_of = {priority_of[i]: i for i in np.flatnonzero(removable).tolist()}
    heap = [priority_of[i] for i in id_of.values() if users[i] == 0]
    heapq.heapify(heap)
    order = []
    while heap:
        token = id_of[heapq.heappop(heap)]
        order.append(token)
        for half in (left[token], right[token]):
            if half != NONE:
                users[half] -= 1
                if users[half] == 0 and may_go[half]:
                    heapq.heappush(heap, priority_of[half])
    return np.array(order, dtype=np.int64)


def dependents_first(priority: Int64s, splits: Splits, removable: Flags) -> Int64s:
    """Ids by their `priority`, each right after what is made of it."""
    candidates = np.flatnonzero(removable)
    by_priority = candidates[np.argsort(priority[candidates], kind="stable")].tolist()
    made_of: dict[int, list[int]] = {}
    for token in by_priority:
        for half in (int(splits.left[token]), int(splits.right[token])):
            if half != NONE:
                made_of.setdefault(half, []).append(token)
    gone: set[int] = set()
    order = []
    for first in by_priority:
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


ORDERS = ("leaf-frequency", "leaf-id", "merge", "frequency", "id", "script")
ORDERS_WITHOUT_MERGES = ("leaf-frequency", "frequency", "leaf-id", "id", "script")
"""The orders of Unigram and WordPiece, in which no token is made of others."""

NEED_COUNTS = ("leaf-frequency", "merge", "frequency", "script")
"""The orders that look at text."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What the orders look at; every array has a row for each id."""

    splits: Splits
    removable: Flags  # closed: nothing that a token outside it is made of
    lengths: Int64s  # characters of the token's string
    script: Int64s  # number of the token's script, -1 where it has none


@dataclass(frozen=True, eq=False)
class RemovalOrder:
    """All tokens that can go, in order; any prefix may be taken."""

    ids: Int64s  # (n,)
    scores: Int64s | None  # (n,) the least first; None where nothing can tie

    def n_decided_by_ties(self, n: int) -> int:
        """How many of the first `n` go only because of a tie-break.

        They have the same score as the first token that stays: another tie-break would have removed
        that one instead. A token that had to wait for others counts with their score.
        """
        if self.scores is None or not 0 < n < len(self.ids):
            return 0
        reached = np.maximum.accumulate(self.scores[: n + 1])
        return int(np.count_nonzero(reached[:n] == reached[n]))


def removal_order(
    order: str, vocabulary: Vocabulary, counts: Int64s | None, *, unreachable_first: bool = False
) -> RemovalOrder:
    """All removable tokens in an order of ORDERS; `counts` of final tokens where it needs them.

    Counts are those without merge skipping, but for "frequency", which takes the tokenizer's own.
    """
    if order not in ORDERS:
        raise ValueError(f"unknown order {order!r}; known are: {', '.join(ORDERS)}")
    splits, rows = vocabulary.splits, len(vocabulary.removable)
    ids = np.arange(rows)
    scores = np.zeros(rows, dtype=np.int64)
    ties: tuple[Int64s, ...] = (-ids,)
    if order in NEED_COUNTS:
        if counts is None:
            raise ValueError(f"the order {order!r} needs a corpus (or counts) to look at")
        scores = counts if order == "frequency" else splits.made_counts(counts)
        if order == "merge":
            ties = (-ids, -vocabulary.lengths)
        if order == "script":
            use = _use_of_scripts(vocabulary.script, counts)
            scores = _ranks(np.lexsort((scores, use)), scores, use)
    if unreachable_first:
        scores = np.where(splits.unreachable, -1, scores)
    priority = np.empty(rows, dtype=np.int64)
    priority[np.lexsort((*ties, scores))] = ids
    take = dependents_first if order == "id" else when_free
    found = take(priority, splits, vocabulary.removable)
    is_by_id = order not in NEED_COUNTS
    return RemovalOrder(found, None if is_by_id else scores[found])


def _use_of_scripts(script: Int64s, counts: Int64s) -> Int64s:
    """By token, the tokens of text in its script; what has no script is used like the first."""
    has_script = script >= 0
    use = np.zeros(int(script.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(use, script[has_script], counts[has_script])
    of_token = np.full(len(script), use.max(initial=0), dtype=np.int64)
    of_token[has_script] = use[script[has_script]]
    return of_token


def _ranks(places: Int64s, *keys: Int64s) -> Int64s:
    """Dense ranks of rows with these keys; equal rows rank alike. `places` sorts the rows."""
    changes = np.zeros(len(places), dtype=bool)
    for key in keys:
        in_order = key[places]
        changes[1:] |= in_order[1:] != in_order[:-1]
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[places] = np.cumsum(changes)
    return ranks
