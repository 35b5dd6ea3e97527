"""The two tokens that each token is made of, if any: the last merge of its own string.

Owns the canonical split ("Teaching Old Tokenizers New Words", section 4): merges alone, without
merge skipping, applied to the token's own bytes or characters. Because merges are applied in order
of rank, the split is the same in any text: no merge crosses the borders of a final token, so inside
them the merges are those of the token alone. Hence the parts of a reachable token are reachable,
and a token is made in any text by exactly the merges of its tree.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from vocabshift.tokenizer.model import compile_model
from vocabshift.tokenizer.token_bytes import byte_pieces, is_byte_level

if TYPE_CHECKING:
    from vocabshift.tokenizer.tokenizer_json import TokenizerParts

NONE = -1
"""Stands for the halves of a token that has none."""

_NOT_MADE = -2
"""What the core returns for a token that merges do not rebuild."""

Flags = NDArray[np.bool_]
Int64s = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Splits:
    """The halves of every token of a model; every array has a row for each id."""

    left: Int64s  # NONE for a token that no merge makes, and where an id names no token
    right: Int64s
    atomic: Flags  # made by no merge, and met in text: bytes, characters, "<0xNN>"
    unreachable: Flags  # merges alone do not make it; byte pieces, added tokens and unk left out
    rank: Int64s  # of the merge that makes it, 0 the first learned; NONE as in `left`

    def users(self) -> Int64s:
        """By id, of how many tokens it is a half; twice where both halves are it."""
        rows = len(self.left)
        halves = (self.left[self.left != NONE], self.right[self.right != NONE])
        first, second = (np.bincount(ids, minlength=rows) for ids in halves)
        return cast("Int64s", first + second)

    def made_counts(self, counts: Int64s) -> Int64s:
        """How often each token occurs while text is encoded, as a final or an intermediate token.

        `counts`: of final tokens. Each of these is made by the merges of its tree in any context,
        so every token passes its count on to both halves.
        """
        total = counts.tolist()  # plain numbers: a loop over arrays is slow
        users = self.users().tolist()
        left, right = self.left.tolist(), self.right.tolist()
        # Wholes before parts: a token is ready when all that it is a half of have passed theirs.
        ready = [token for token, n in enumerate(users) if n == 0 and left[token] != NONE]
        for token in ready:  # grows as it goes
            for half in (left[token], right[token]):
                total[half] += total[token]
                users[half] -= 1
                if users[half] == 0 and left[half] != NONE:
                    ready.append(half)
        return np.array(total, dtype=np.int64)

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


def no_splits(atomic: Flags) -> Splits:
    """The splits of a model that makes no token of others."""
    none = np.full(len(atomic), NONE, dtype=np.int64)
    return Splits(none, none, atomic, np.zeros(len(atomic), dtype=bool), none)


def split_tokens(tokenizer: TokenizerParts) -> Splits:
    """The splits of a BPE tokenizer, byte-level or of characters."""
    model = tokenizer.model
    vocab, merges = model.vocab, model.merges
    rows = 1 + max((model.size - 1, *(token.id for token in tokenizer.added_tokens)))
    # In the order of the vocabulary: the rank of the last merge, -1 for an atom, or _NOT_MADE.
    last = compile_model(model, byte_level=is_byte_level(tokenizer)).last_merges()
    ids = np.fromiter(vocab.values(), np.int64, len(vocab))
    made = last >= 0
    left, right, rank = (np.full(rows, NONE, dtype=np.int64) for _ in range(3))
    rank[ids[made]] = last[made]
    pairs = [merges[number] for number in last[made].tolist()]
    left[ids[made]] = [vocab[pair[0]] for pair in pairs]
    right[ids[made]] = [vocab[pair[1]] for pair in pairs]

    atomic = np.zeros(rows, dtype=bool)
    atomic[ids[last == -1]] = True
    unreachable = np.zeros(rows, dtype=bool)
    unreachable[ids[last == _NOT_MADE]] = True
    unreachable[[token.id for token in tokenizer.added_tokens]] = False
    if model.unk_token is not None and model.unk_token in vocab:
        unreachable[vocab[model.unk_token]] = False
    single = [vocab[token] for token in byte_pieces(tokenizer)]
    unreachable[single] = False
    atomic[single] = True
    return Splits(left, right, atomic, unreachable, rank)


def unreachable_tokens(tokenizer: TokenizerParts) -> tuple[str, ...]:
    """STT: tokens of the model that its merges do not rebuild, by id; added tokens are left out.

    The self-tokenization test of "Teaching Old Tokenizers New Words", section 3. Byte pieces and
    added tokens are not counted: nothing has to rebuild them. Whether the *pipeline* lets a token
    through is another question (see `checks.reachability`).
    """
    left_out = {token.content for token in tokenizer.added_tokens} | set(byte_pieces(tokenizer))
    if tokenizer.model.unk_token is not None:
        left_out.add(tokenizer.model.unk_token)
    encoder = compile_model(tokenizer.model, byte_level=is_byte_level(tokenizer))
    not_made = np.flatnonzero(encoder.last_merges() == _NOT_MADE).tolist()
    tokens = list(tokenizer.model.vocab.items())  # in the encoder's order
    found = sorted((token_id, token) for token, token_id in map(tokens.__getitem__, not_made))
    return tuple(token for _, token in found if token not in left_out)


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
