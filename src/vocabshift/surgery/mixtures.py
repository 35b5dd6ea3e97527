"""Of which old rows, with which weights, each new token is made: the choices besides the mean.

A mixture is a TokenMap with other pieces or weights for the tokens that are made; what is copied
stays. So whatever moves rows (in memory, or shard by shard) needs to know nothing of methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from vocabshift.surgery.token_map import Ids, TokenMap, Weights


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows of weights over old ids, for some of the made tokens."""

    places: Ids  # (n,) which of `made`, ascending
    offsets: Ids  # (n + 1,)
    ids: Ids  # (n_weights,) old ids
    weights: Weights  # (n_weights,)


def weighted_by_bytes(token_map: TokenMap, lengths: Mapping[int, int]) -> TokenMap:
    """Every piece counts as much as it has bytes; `lengths`: old id -> bytes, 1 where unknown."""
    sizes = np.array([max(lengths.get(i, 1), 1) for i in token_map.pieces.tolist()], dtype=float)
    if not len(sizes):
        return replace(token_map, weights=sizes)
    totals = np.add.reduceat(sizes, token_map.offsets[:-1])
    return replace(token_map, weights=sizes / np.repeat(totals, np.diff(token_map.offsets)))


def first_pieces(token_map: TokenMap) -> TokenMap:
    """The first old piece alone: what the old model would have to predict next."""
    return _picked(token_map, token_map.offsets[:-1, None])


def last_pieces(token_map: TokenMap) -> TokenMap:
    """The last old piece alone: what the old model would just have read."""
    return _picked(token_map, token_map.offsets[1:, None] - 1)


def first_and_last_pieces(token_map: TokenMap) -> TokenMap:
    """The first and the last piece, half each: for one matrix that serves as head and as input."""
    return _picked(token_map, np.stack([token_map.offsets[:-1], token_map.offsets[1:] - 1], axis=1))


def _picked(token_map: TokenMap, places: Ids) -> TokenMap:
    """The pieces at `places` (n_made, n_picked), with equal weights."""
    n_made, n_picked = places.shape
    return replace(
        token_map,
        pieces=token_map.pieces[places.reshape(-1)],
        offsets=np.arange(n_made + 1, dtype=np.int64) * n_picked,
    )


def with_sparse(token_map: TokenMap, sparse: Sparse) -> TokenMap:
    """Tokens that `sparse` names get its ids and weights; the others keep the mean of theirs."""
    lengths = np.diff(token_map.offsets)
    weights = token_map.weights
    if weights is None:
        weights = np.repeat(1 / np.maximum(lengths, 1), lengths)
    kept = np.ones(token_map.n_made, dtype=bool)
    kept[sparse.places] = False
    new_lengths = lengths.copy()
    new_lengths[sparse.places] = np.diff(sparse.offsets)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(new_lengths)])
    of_kept = np.repeat(kept, new_lengths)
    pieces = np.empty(int(offsets[-1]), dtype=np.int64)
    values = np.empty(len(pieces), dtype=np.float64)
    stays = np.repeat(kept, lengths)
    pieces[of_kept], values[of_kept] = token_map.pieces[stays], weights[stays]
    pieces[~of_kept], values[~of_kept] = sparse.ids, sparse.weights
    return replace(token_map, pieces=pieces, offsets=offsets, weights=values)
