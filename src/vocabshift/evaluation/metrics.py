"""Ratio metrics: pure functions of per-line counts, with bootstrap intervals over lines.

Owns the definitions of method.md §7 that are a ratio of two sums over lines (IST's
micro-average), and the percentile bootstrap (Efron 1979) around them. To add a metric of this
kind is to add one line to `METRICS`. Knows nothing of tokenizers, languages or files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.counts import Ints, LineCounts

Floats = npt.NDArray[np.float64]
Terms = tuple[Ints, Ints]
"""Numerator and denominator of each line, each (n_lines,)."""

BASE_METRIC = "normalized_sequence_length"
"""The metric that compares with a base tokenizer."""

METRICS: dict[str, Callable[[LineCounts], Terms]] = {
    "fertility": lambda c: (c.n_tokens, c.n_words),
    "bytes_per_token": lambda c: (c.n_bytes, c.n_tokens),
    "characters_per_token": lambda c: (c.n_characters, c.n_tokens),
    "tokens_per_character": lambda c: (c.n_tokens, c.n_characters),  # Matra's NSL
    "sequence_reduction": lambda c: (c.n_bytes - c.n_tokens, c.n_bytes),
    "single_character_rate": lambda c: (c.n_single_character_tokens, c.n_tokens),
}
"""Metrics of one tokenizer alone, by name."""

KNOWN = (*METRICS, BASE_METRIC)
"""Names of all metrics of this file."""

_RESAMPLES = 1000
_SEED = 20_260
_MAX_UNITS = 4096  # above this many lines, groups of lines are resampled instead of lines
_CHUNK = 100  # resamples held in memory at a time


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio and its 95 % interval; no interval for a single line."""

    value: float
    low: float | None
    high: float | None


def check_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """`names` without repetitions, or ValueError with the metrics that are known."""
    wanted = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in KNOWN]
    if unknown:
        raise ValueError(f"unknown metric {unknown[0]!r}; known are: {', '.join(KNOWN)}")
    if not wanted:
        raise ValueError(f"no metric is given; known are: {', '.join(KNOWN)}")
    return wanted


def terms(name: str, counts: LineCounts, base: LineCounts | None = None) -> Terms:
    """Numerator and denominator of metric `name` on each line.

    `base` holds the counts of the base tokenizer on the same lines; only
    "normalized_sequence_length" (tokens over the base's tokens) needs it.
    """
    if name != BASE_METRIC:
        return METRICS[name](counts)
    if base is None:
        raise ValueError(f"{BASE_METRIC} compares with a base tokenizer; give one as base")
    return counts.n_tokens, base.n_tokens


def estimate(columns: Sequence[Terms]) -> list[Estimate]:
    """Sum over lines, then the ratio, and its interval, for each (numerator, denominator).

    All columns belong to the same lines and are resampled together, so that intervals of
    several tokenizers rest on the same draws. The seed is fixed: same input, same interval.
    Above 4,096 lines they are dealt into that many groups and the groups are resampled, which
    widens or narrows an interval by about one per cent of its width and bounds the cost.
    Raises ZeroDivisionError where a denominator is zero on every line.
    """
    if not columns:
        return []
    numerators = np.stack([column[0] for column in columns], axis=1).astype(np.float64)
    denominators = np.stack([column[1] for column in columns], axis=1).astype(np.float64)
    if not denominators.sum(axis=0).all():
        raise ZeroDivisionError("a denominator is zero on every line")
    values = numerators.sum(axis=0) / denominators.sum(axis=0)
    if len(numerators) == 1:
        return [Estimate(float(value), None, None) for value in values]
    low, high = _interval(_grouped(numerators), _grouped(denominators))
    return [
        Estimate(float(value), float(below), float(above))
        for value, below, above in zip(values, low, high, strict=True)
    ]


def _grouped(lines: Floats) -> Floats:
    """(n_lines, k) -> at most (4096, k): lines dealt in turn into groups and summed."""
    if len(lines) <= _MAX_UNITS:
        return lines
    padded = np.zeros((-(-len(lines) // _MAX_UNITS) * _MAX_UNITS, lines.shape[1]))
    padded[: len(lines)] = lines
    return np.asarray(padded.reshape(-1, _MAX_UNITS, lines.shape[1]).sum(axis=0))


def _interval(numerators: Floats, denominators: Floats) -> tuple[Floats, Floats]:
    """2.5 % and 97.5 % quantiles, (k,) each, of the ratios of resampled units (n_units, k)."""
    generator = np.random.default_rng(_SEED)
    n_units = len(numerators)
    ratios = []
    for _ in range(_RESAMPLES // _CHUNK):
        drawn = generator.integers(0, n_units, (_CHUNK, n_units))
        drawn += np.arange(_CHUNK)[:, None] * n_units  # each resample counts in a row of its own
        weights = np.bincount(drawn.ravel(), minlength=_CHUNK * n_units)
        weights = weights.reshape(_CHUNK, n_units).astype(np.float64)
        below = weights @ denominators
        # A resample without a single token says nothing about a ratio to tokens.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios.append(np.where(below > 0, weights @ numerators / below, np.nan))
    low, high = np.nanquantile(np.concatenate(ratios), (0.025, 0.975), axis=0)
    return low, high
