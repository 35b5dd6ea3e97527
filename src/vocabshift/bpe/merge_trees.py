"""How BPE builds a token: the tree of its merges, down to bytes or characters.

Owns the tree as a flat list. Which two tokens a token is made of is `splits`'; how a tree is drawn
is not known here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from vocabshift.bpe.splits import NONE, Splits

MOST_NODES = 1023
"""A tree with more nodes is cut at its lowest leaves: a few bytes can spell a token of millions."""


@dataclass(frozen=True, slots=True)
class MergeNode:
    """A token in a tree; the root is the first of its list."""

    id: int
    rank: int | None = None  # of the merge that makes it, 0 the first learned; None for a leaf
    left: int | None = None  # index into the list
    right: int | None = None
    is_cut: bool = False  # made of others too, which are left out here


def merge_tree(splits: Splits, token_id: int, *, most: int = MOST_NODES) -> list[MergeNode]:
    """The nodes of a token's tree, level by level, at most `most` of them (at least 1).

    The token is made by exactly these merges in any text. One that merges do not make (a byte, an
    added token) is a tree of one node. IndexError for an id that the model does not have.
    """
    if not 0 <= token_id < len(splits.left):
        raise IndexError(f"no token has the id {token_id}")
    nodes: list[MergeNode] = []
    seen, waiting = 1, deque([token_id])
    while waiting:
        current = waiting.popleft()
        left, right = int(splits.left[current]), int(splits.right[current])
        if left == NONE:
            nodes.append(MergeNode(current))
        elif seen + 2 > most:
            nodes.append(MergeNode(current, int(splits.rank[current]), is_cut=True))
        else:
            nodes.append(MergeNode(current, int(splits.rank[current]), seen, seen + 1))
            waiting += (left, right)
            seen += 2
    return nodes
