"""Tensor functions that make the row of a new token from old rows.

Each takes the old matrix once (for its statistics) and returns a function of one block of tokens,
so memory does not grow with the vocabulary. All arithmetic is in float32 (float64 for float64
weights); the caller rounds to the model's dtype. FVT: Gee et al. 2022, "Fast Vocabulary Transfer",
also called ReTok. RowSources hold the old tokens of each new token and their weights; `methods` has
the names that `init=` takes. torch is imported when a function runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from vocabshift.models.tables import block_length

if TYPE_CHECKING:
    import torch

_SINGULAR = 1e-6
"""A factor whose diagonal falls below this share of the largest deviation is rounding noise."""


class MakeRows(Protocol):
    """One block of new tokens: their old tokens (n_pieces,), offsets (n + 1,), weights (n_pieces,).

    Returns rows (n, hidden). Without weights the old tokens of a new token count equally.
    """

    def __call__(  # noqa: D102
        self, pieces: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor | None = None, /
    ) -> torch.Tensor: ...


RowFunction = Callable[["torch.Tensor", "torch.Tensor", int], MakeRows]
"""(old matrix (rows, hidden), ids in use (n_old,), seed) -> MakeRows."""


def fvt(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:  # noqa: ARG001
    """The mean of the rows of a token's old tokens, each counted as often as it occurs.

    With weights: their weighted sum. A token without old tokens gets the mean of all rows in use.
    """
    import torch

    mean_row = cache(lambda: mean_and_std(old, used)[0])  # most tables have no use for it

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
        lengths = offsets.diff()
        if weights is None:
            sums /= lengths.clamp_min(1).unsqueeze(1)
        if bool((lengths == 0).any()):
            sums[lengths == 0] = mean_row()
        return sums

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
    """The mean row plus `spread` applied to standard normal noise (n, hidden)."""
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


def blocks(offsets: npt.NDArray[np.int64], hidden_size: int) -> Iterator[tuple[int, int]]:
    """Ranges of new tokens whose old tokens fit into one block; at least one new token each."""
    limit, start = block_length(hidden_size), 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + limit, side="right")) - 1
        stop = min(max(stop, start + 1), start + limit)  # tokens may have no old tokens
        yield start, stop
        start = stop


def compute_dtype(matrix: torch.Tensor) -> torch.dtype:
    """float32, or float64 for float64."""
    import torch

    return torch.promote_types(matrix.dtype, torch.float32)
