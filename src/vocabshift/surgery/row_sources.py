"""RowSources: the old embedding rows from which each token of a new vocabulary is made.

A token that the old vocabulary has copies its row. Any other is made of old tokens (`pieces`), with
or without weights. Initializers that differ only in these (the second half of this file) return
other RowSources, so the code that moves rows, in memory or shard by shard, does not depend on them.
Knows nothing of tensors, nor of how tokens are matched (`matching`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowSources:
    """Every id of the new tokenizer, either copied from one old id or made of old tokens."""

    copied_from: Ids  # (n_copied,) old ids
    copied_to: Ids  # (n_copied,) new ids
    made: Ids  # (n_made,) new ids without a counterpart
    pieces: Ids  # (n_pieces,) old ids of all made tokens, one token after the other
    offsets: Ids  # (n_made + 1,) token i of `made` has pieces[offsets[i] : offsets[i + 1]]
    """A token may have no pieces (its bytes are missing in the old vocabulary): it gets the mean of
    all old rows."""
    old_ids: Ids  # (n_old,) every id that names a token of the old tokenizer, ascending
    ambiguous: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(new id, old ids) of copied tokens whose bytes several old tokens have; one was taken."""
    weights: Weights | None = None  # (n_pieces,) of the old tokens; None: equal weights

    @property
    def mixture(self) -> tuple[Ids, Ids, Weights]:
        """Old tokens, offsets and weights (an empty array if there are none) of the made tokens."""
        weights = np.zeros(0) if self.weights is None else self.weights
        return self.pieces, self.offsets, weights

    @property
    def n_copied(self) -> int:
        """New tokens that copy a row."""
        return len(self.copied_to)

    @property
    def n_made(self) -> int:
        """New tokens whose row is made of several."""
        return len(self.made)

    @property
    def without_pieces(self) -> Ids:
        """The made tokens of which the old tokenizer knows no byte, ascending."""
        has_none: npt.NDArray[np.bool_] = np.diff(self.offsets) == 0
        return np.asarray(self.made[has_none], dtype=np.int64)

    @property
    def n_removed(self) -> int:
        """Old tokens that no new token copies."""
        return len(self.old_ids) - len(np.unique(self.copied_from))

    @cached_property
    def old_to_new(self) -> dict[int, int]:
        """New id of each kept old id; the lowest where several copy it."""
        pairs = zip(self.copied_from.tolist(), self.copied_to.tolist(), strict=True)
        return dict(sorted(pairs, reverse=True))


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows of weights over old ids, for some of the made tokens."""

    places: Ids  # (n,) which of `made`, ascending
    offsets: Ids  # (n + 1,)
    ids: Ids  # (n_weights,) old ids
    weights: Weights  # (n_weights,)


def weighted_by_bytes(sources: RowSources, lengths: Mapping[int, int]) -> RowSources:
    """Weight each old token by its bytes; `lengths`: old id -> bytes, 1 where unknown."""
    sizes = np.array([max(lengths.get(i, 1), 1) for i in sources.pieces.tolist()], dtype=float)
    lengths_of_made = np.diff(sources.offsets)
    token = np.repeat(np.arange(sources.n_made), lengths_of_made)
    totals = np.bincount(token, weights=sizes, minlength=sources.n_made)
    return replace(sources, weights=sizes / np.repeat(totals, lengths_of_made))


def first_pieces(sources: RowSources) -> RowSources:
    """The first old token alone, which the old model would have to predict next."""
    return _picked(sources, lambda first, _: [first])


def last_pieces(sources: RowSources) -> RowSources:
    """The last old token alone, which the old model would just have read."""
    return _picked(sources, lambda _, last: [last])


def first_and_last_pieces(sources: RowSources) -> RowSources:
    """The first and the last old token, half each: for a matrix that is both head and input."""
    return _picked(sources, lambda first, last: [first, last])


def _picked(sources: RowSources, pick: Callable[[Ids, Ids], list[Ids]]) -> RowSources:
    """Some old tokens of each new one, with equal weights; tokens without any still have none.

    `pick`: from the places of the first and last old token (n,) to the places to take.
    """
    has_any = np.diff(sources.offsets) > 0
    chosen = pick(sources.offsets[:-1][has_any], sources.offsets[1:][has_any] - 1)
    lengths = np.where(has_any, len(chosen), 0)
    return replace(
        sources,
        pieces=sources.pieces[np.stack(chosen, axis=1).reshape(-1)],
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
    )


def with_sparse(sources: RowSources, sparse: Sparse) -> RowSources:
    """Tokens that `sparse` names get its ids and weights; the others keep the mean of theirs."""
    lengths = np.diff(sources.offsets)
    weights = sources.weights
    if weights is None:
        weights = np.repeat(1 / np.maximum(lengths, 1), lengths)
    kept = np.ones(sources.n_made, dtype=bool)
    kept[sparse.places] = False
    new_lengths = lengths.copy()
    new_lengths[sparse.places] = np.diff(sparse.offsets)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(new_lengths)])
    of_kept = np.repeat(kept, new_lengths)
    pieces = np.empty(int(offsets[-1]), dtype=np.int64)
    values = np.empty(len(pieces), dtype=np.float64)
    stays = np.repeat(kept, lengths)
    pieces[of_kept], values[of_kept] = sources.pieces[stays], weights[stays]
    pieces[~of_kept], values[~of_kept] = sparse.ids, sparse.weights
    return replace(sources, pieces=pieces, offsets=offsets, weights=values)
