"""Initializers: how the row of a token that the old vocabulary lacks is made from old rows.

Pure tensor functions. Each takes the old matrix once (for its statistics) and gives a function of
one block of tokens, so that any size of vocabulary needs little memory. All arithmetic is in
float32 (float64 for float64 weights); the caller rounds to the model's dtype. FVT: Gee et al.
2022, "Fast Vocabulary Transfer", also called ReTok.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

    from vocabshift.surgery.token_map import Ids

BLOCK_ELEMENTS = 2**20
"""Numbers gathered at a time: 4 MiB in float32, which caches hold (eight times it: 3 x slower)."""

MakeRows = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""(pieces (n_pieces,), offsets (n + 1,)) -> rows (n, hidden): one block of tokens."""

Initializer = Callable[["torch.Tensor", "torch.Tensor", int], MakeRows]
"""(old matrix (rows, hidden), ids in use (n_old,), seed) -> MakeRows."""


def fvt(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:  # noqa: ARG001
    """The mean of the rows of a token's old pieces, each counted as often as it occurs."""
    import torch

    def make(pieces: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        rows = old.index_select(0, pieces).to(_compute_dtype(old))
        each = torch.arange(len(pieces), device=old.device)
        starts = offsets[:-1] - offsets[0]
        sums = torch.nn.functional.embedding_bag(each, rows, starts, mode="sum")
        return sums / offsets.diff().unsqueeze(1)

    return make


def mean(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:  # noqa: ARG001
    """The mean of all rows in use, for every token."""
    row, _ = mean_and_std(old, used)
    return lambda _, offsets: row.expand(len(offsets) - 1, -1)


def random(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:
    """Normal, with the mean and standard deviation that each dimension has over rows in use."""
    import torch

    mean_row, std_row = mean_and_std(old, used)
    generator = torch.Generator().manual_seed(seed)  # on the CPU: the same rows on any device

    def make(_: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        shape = (len(offsets) - 1, old.shape[1])
        noise = torch.randn(shape, generator=generator, dtype=mean_row.dtype)
        return mean_row + noise.to(old.device) * std_row

    return make


def zeros(old: torch.Tensor, used: torch.Tensor, seed: int) -> MakeRows:  # noqa: ARG001
    """Zeros; for an untied head that means: as likely as a logit of 0."""
    return lambda _, offsets: old.new_zeros(
        (len(offsets) - 1, old.shape[1]), dtype=_compute_dtype(old)
    )


INITIALIZERS: dict[str, Initializer] = {
    "fvt": fvt,
    "retok": fvt,
    "mean": mean,
    "random": random,
    "zeros": zeros,
}
"""By the name that `init=` takes."""


def initializer(name: str) -> Initializer:
    """The initializer of this name; ValueError lists the names there are."""
    if name not in INITIALIZERS:
        raise ValueError(f"unknown init {name!r}; known are: {', '.join(INITIALIZERS)}")
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
    dtype = _compute_dtype(old)
    return centre.to(dtype), variance.sqrt().to(dtype)


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


def _compute_dtype(matrix: torch.Tensor) -> torch.dtype:
    import torch

    return torch.promote_types(matrix.dtype, torch.float32)
