"""FVT written plainly, one token at a time: what the fast transfer is held against.

For byte-level tokenizers, straight from the definition: a token that the old vocabulary has keeps
its row; any other is the mean of the rows of its pieces under the old merges.
"""

from __future__ import annotations

from itertools import pairwise

import torch


def bpe(token: str, merges: list[tuple[str, str]]) -> list[str]:
    """The pieces of a byte-level string: the earliest merge first, leftmost first."""
    rank = {pair: place for place, pair in enumerate(merges)}
    pieces = list(token)
    while True:
        found = [(rank[pair], place) for place, pair in enumerate(pairwise(pieces)) if pair in rank]
        if not found:
            return pieces
        _, place = min(found)
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]


def new_row(
    token: str, old: torch.Tensor, vocab: dict[str, int], merges: list[tuple[str, str]]
) -> torch.Tensor:
    """The row (hidden,) of a token, in the dtype of the old matrix (rows, hidden)."""
    if token in vocab:
        return old[vocab[token]]
    rows = [old[vocab[piece]].float() for piece in bpe(token, merges)]
    total = torch.zeros_like(rows[0])
    for row in rows:
        total = total + row
    return (total / len(rows)).to(old.dtype)
