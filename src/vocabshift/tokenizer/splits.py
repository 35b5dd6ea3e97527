"""Of which two tokens is each token made? The last merge of its own string.

Owns the canonical split ("Teaching Old Tokenizers New Words", section 4): merges alone, without
merge skipping, run on the token's own bytes or characters. Lowest rank first makes it the same in
any text: no merge crosses the borders of a token that stands in the end, so inside them the merges
are those of the token alone. Hence the parts of a token that can be made can be made themselves,
and a token is made in any text by exactly the merges of its tree.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vocabshift.text.patterns import from_spec
from vocabshift.tokenizer.encoder import Encoder
from vocabshift.tokenizer.model import compile_model
from vocabshift.tokenizer.reachability import byte_pieces
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer

NONE = -1
"""Stands for the halves of a token that has none."""

Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Splits:
    """The halves of every token of a model; every array has a row for each id."""

    left: Ids  # NONE for a token that no merge makes, and where an id names no token
    right: Ids
    atomic: Flags  # made by no merge, and met in text: bytes, characters, "<0xNN>"
    unreachable: Flags  # merges alone do not make it; byte pieces, added tokens and unk left out
    rank: Ids  # of the merge that makes it, 0 the first learned; NONE as in `left`

    def users(self) -> Ids:
        """By id, of how many tokens it is a half; twice where both halves are it."""
        rows = len(self.left)
        halves = (self.left[self.left != NONE], self.right[self.right != NONE])
        first, second = (np.bincount(ids, minlength=rows) for ids in halves)
        return cast("Ids", first + second)

    def trees(self, roots: Flags) -> Flags:
        """Everything that the tokens `roots` are made of, themselves included."""
        found = np.zeros(len(self.left), dtype=bool)
        new = roots.copy()
        while new.any():
            found |= new
            halves = np.concatenate([self.left[new], self.right[new]])
            new = np.zeros_like(found)
            new[halves[halves != NONE]] = True
            new &= ~found
        return found


def no_splits(rows: int, atomic: Flags) -> Splits:
    """The splits of a model that makes no token of others."""
    none = np.full(rows, NONE, dtype=np.int64)
    return Splits(none, none, atomic, np.zeros(rows, dtype=bool), none)


def split_tokens(tokenizer: Tokenizer, encoder: Encoder | None = None) -> Splits:
    """The splits of a BPE tokenizer, byte-level or of characters.

    `encoder`: of this tokenizer, with or without merge skipping, where one is there already.
    """
    model = tokenizer.model
    rows = tokenizer.row_count
    left = np.full(rows, NONE, dtype=np.int64)
    right = left.copy()
    byte_level = is_byte_level(tokenizer)
    compiled = None
    # Subtle: behind a foreign pre-tokenizer a byte-level model is compiled as one of characters.
    if encoder is not None and byte_level == (from_spec(tokenizer.pre_tokenizer) is not None):
        compiled = encoder.compiled
    last = (compiled or compile_model(model, byte_level=byte_level)).last_merges()
    ids = np.fromiter(model.vocab.values(), np.int64, len(model.vocab))
    made = last >= 0
    vocab, merges = model.vocab, model.merges
    rank = np.full(rows, NONE, dtype=np.int64)
    rank[ids[made]] = last[made]
    pairs = [merges[number] for number in last[made].tolist()]
    left[ids[made]] = [vocab[pair[0]] for pair in pairs]
    right[ids[made]] = [vocab[pair[1]] for pair in pairs]

    atomic = np.zeros(rows, dtype=bool)
    atomic[ids[last == -1]] = True
    unreachable = np.zeros(rows, dtype=bool)
    unreachable[ids[last == -2]] = True
    unreachable[[token.id for token in tokenizer.added_tokens]] = False
    if model.unk_token is not None and model.unk_token in vocab:
        unreachable[vocab[model.unk_token]] = False
    single = [vocab[token] for token in byte_pieces(tokenizer)]
    unreachable[single] = False
    atomic[single] = True
    return Splits(left, right, atomic, unreachable, rank)


# How BPE builds a token: the tree of its merges, down to bytes or characters.
#
# Owns the tree as a flat list. Which two tokens a token is made of is `splits`'; how a tree is
# drawn is not known here.


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
