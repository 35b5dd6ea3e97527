"""Intervals over seeds and documents together, and of differences paired over both.

A value is a ratio of sums over seeds and documents: bits over bytes, hits over sentences. Seeds and
documents are drawn anew independently of each other (a crossed bootstrap), the same draw for both
sides of a difference. With three seeds the interval is too short rather than too long: that all
seeds agree in sign is told beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_DRAWS = 2000
_SEED = 20_261

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A value, its 95 % interval, and whether every seed by itself is on one side of zero."""

    value: float
    low: float
    high: float
    seeds_agree: bool

    @property
    def is_clear(self) -> bool:
        """Whether zero lies outside, for every seed too."""
        return self.seeds_agree and (self.low > 0 or self.high < 0)


def over_seeds_and_documents(amounts: Floats, sizes: Floats) -> Interval:
    """`amounts` (n_seeds, n_documents), or their differences, by `sizes` (n_documents,)."""
    n_seeds, n_documents = amounts.shape
    by_seed = amounts.sum(axis=1) / sizes.sum()
    generator = np.random.default_rng(_SEED)
    seeds = _counts(generator, n_seeds)
    documents = _counts(generator, n_documents)
    sums = np.einsum("rs,sd,rd->r", seeds, amounts, documents, optimize=True)
    drawn = sums / (n_seeds * (documents @ sizes))
    low, high = np.quantile(drawn, (0.025, 0.975))
    agree = bool((by_seed > 0).all() or (by_seed < 0).all())
    return Interval(float(by_seed.mean()), float(low), float(high), agree)


def _counts(generator: np.random.Generator, n: int) -> Floats:
    """How often each of `n` is drawn in each of the draws, (n_draws, n)."""
    return generator.multinomial(n, np.full(n, 1 / n), size=_DRAWS).astype(np.float64)
