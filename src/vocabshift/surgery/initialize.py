"""Initializers: how the row of a token that the old vocabulary lacks is made from old rows.

Pure tensor functions. Each takes the old matrix once (for its statistics) and gives a function of
one block of tokens, so that any size of vocabulary needs little memory. All arithmetic is in
float32 (float64 for float64 weights); the caller rounds to the model's dtype. FVT: Gee et al.
2022, "Fast Vocabulary Transfer", also called ReTok. Which pieces with which weights a token is made
of is not decided here: `init_context` writes that into the TokenMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from vocabshift.surgery.row_sources import Ids, TokenMap, Weights

if TYPE_CHECKING:
    import torch

BLOCK_ELEMENTS = 2**20
"""Numbers gathered at a time: 4 MiB in float32, which caches hold (eight times it: 3 x slower)."""

_SINGULAR = 1e-6
"""A factor with a smaller diagonal, beside the largest deviation, is noise of rounding."""


class MakeRows(Protocol):
    """One block of tokens: its pieces (n_pieces,), offsets (n + 1,) and weights (n_pieces,).

    Gives rows (n, hidden). Without weights the pieces of a token count alike and sum to 1.
    """

    def __call__(  # noqa: D102
        self, pieces: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor | None = None, /
    ) -> torch.Tensor: ...


Initializer = Callable[["torch.Tensor", "torch.Tensor", int], MakeRows]
"""(old matrix (rows, hidden), ids in use (n_old,), seed) -> MakeRows."""


def fvt(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:  # noqa: ARG001
    """The mean of the rows of a token's old pieces, each counted as often as it occurs.

    With weights their weighted sum.
    """
    import torch

    def make(
        pieces: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor | None = None, /
    ) -> torch.Tensor:
        rows = old.index_select(0, pieces).to(compute_dtype(old))
        each = torch.arange(len(pieces), device=old.device)
        starts = offsets[:-1] - offsets[0]
        by_piece = None if weights is None else weights.to(rows.dtype)
        sums = torch.nn.functional.embedding_bag(
            each, rows, starts, mode="sum", per_sample_weights=by_piece
        )
        return sums / offsets.diff().unsqueeze(1) if weights is None else sums

    return make


def mean(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:  # noqa: ARG001
    """The mean of all rows in use, for every token."""
    row, _ = mean_and_std(old, used)
    return lambda _, offsets, *_rest: row.expand(len(offsets) - 1, -1)


def random(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:
    """Normal, with the mean and standard deviation that each dimension has over rows in use."""
    mean_row, std_row = mean_and_std(old, used)
    return _noisy(seed, mean_row, lambda noise: noise * std_row)


def normal(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:
    """Normal, with the mean and the whole covariance of the rows in use (Hewitt 2021).

    Where the covariance is singular (fewer rows than dimensions, a constant dimension), Cholesky's
    factor does not exist and the eigenvectors' is taken: rows then stay in the span of old ones.
    """
    import torch

    mean_row, covariance = mean_and_covariance(old, used)
    factor, failed = torch.linalg.cholesky_ex(covariance)
    smallest = factor.diagonal().min() if not bool(failed) else factor.new_zeros(())
    if smallest <= _SINGULAR * covariance.diagonal().max().sqrt():
        values, vectors = torch.linalg.eigh(covariance)
        factor = vectors * values.clamp_min(0).sqrt()
    transposed = factor.T.to(mean_row.dtype)
    return _noisy(seed, mean_row, lambda noise: noise @ transposed)


def _noisy(
    seed: int, mean_row: torch.Tensor, spread: Callable[[torch.Tensor], torch.Tensor]
) -> MakeRows:
    """The mean row plus what `spread` makes of standard normal noise (n, hidden)."""
    import torch

    generator = torch.Generator().manual_seed(seed)  # on the CPU: the same rows on any device

    def make(_: torch.Tensor, offsets: torch.Tensor, *_rest: torch.Tensor | None) -> torch.Tensor:
        shape = (len(offsets) - 1, len(mean_row))
        noise = torch.randn(shape, generator=generator, dtype=mean_row.dtype)
        return mean_row + spread(noise.to(mean_row.device))

    return make


def zeros(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:  # noqa: ARG001
    """Zeros; for an untied head that means: as likely as a logit of 0."""
    return lambda _, offsets, *_rest: old.new_zeros(
        (len(offsets) - 1, old.shape[1]), dtype=compute_dtype(old)
    )


INITIALIZERS: dict[str, Initializer] = {
    "fvt": fvt,
    "retok": fvt,
    "fvt-weighted": fvt,
    "first-last": fvt,
    "omp": fvt,
    "focus": fvt,
    "mean": mean,
    "normal": normal,
    "random": random,
    "zeros": zeros,
}
"""By the name that `init=` takes; those that share a function differ in pieces and weights."""


def initializer(name: str) -> Initializer:
    """The initializer of this name; ValueError lists the names there are."""
    if name not in INITIALIZERS:
        raise ValueError(f"unknown init {name!r}; known are: {', '.join(INITIALIZERS)}, auto")
    return INITIALIZERS[name]


def mean_and_std(old: torch.Tensor, used: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and (population) standard deviation of each dimension over the rows in use.

    Both (hidden,), summed in float64 block by block.
    """
    import torch

    total = torch.zeros(old.shape[1], dtype=torch.float64, device=old.device)
    squares = torch.zeros_like(total)
    for ids in torch.split(used, block_length(old.shape[1])):
        rows = old.index_select(0, ids).double()
        total += rows.sum(0)
        squares += rows.square().sum(0)
    centre = total / max(len(used), 1)
    variance = (squares / max(len(used), 1) - centre.square()).clamp_min(0)
    dtype = compute_dtype(old)
    return centre.to(dtype), variance.sqrt().to(dtype)


def mean_and_covariance(old: torch.Tensor, used: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (hidden,) and (population) covariance (hidden, hidden), float64, of the rows in use."""
    import torch

    mean_row, _ = mean_and_std(old, used)
    hidden = old.shape[1]
    covariance = torch.zeros((hidden, hidden), dtype=torch.float64, device=old.device)
    for ids in torch.split(used, block_length(hidden)):
        rows = old.index_select(0, ids).to(mean_row.dtype) - mean_row
        covariance += rows.T @ rows  # a block in the rows' precision: twice as fast as float64
    return mean_row, covariance / max(len(used), 1)


def block_length(hidden_size: int) -> int:
    """Rows of one block."""
    return max(1, BLOCK_ELEMENTS // max(hidden_size, 1))


def blocks(offsets: Ids, hidden_size: int) -> Iterator[tuple[int, int]]:
    """Ranges of tokens whose pieces fit into one block; at least one token each."""
    limit, start = block_length(hidden_size), 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + limit, side="right")) - 1
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def compute_dtype(matrix: torch.Tensor) -> torch.dtype:
    """float32, or float64 for float64."""
    import torch

    return torch.promote_types(matrix.dtype, torch.float32)


# Of which old rows, with which weights, each new token is made: the choices besides the mean.
#
# A mixture is a TokenMap with other pieces or weights for the tokens that are made; what is copied
# stays. So whatever moves rows (in memory, or shard by shard) needs to know nothing of methods.


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
