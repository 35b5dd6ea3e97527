"""Percentile bootstrap over lines (Efron 1979): intervals of ratios and of other functions of sums.

Owns the resamples, which depend on the number of lines alone. The seed is fixed, so the same input
gives the same interval, and all subjects and languages with the same number of lines are resampled
together. Above 4,096 lines, lines are assigned to that many groups and the groups are resampled,
which changes an interval's width by about one per cent and bounds the cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from vocabshift.results import Result

Floats = npt.NDArray[np.float64]
Column = npt.NDArray[np.int64] | Floats
Terms = tuple[Column, Column]
"""Numerator and denominator of each line, each (n_lines,)."""

_RESAMPLES = 1000
_SEED = 20_260
_MAX_UNITS = 4096  # above this many lines, groups of lines are resampled instead of lines
_CHUNK = 100  # resamples drawn at a time


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval; no interval for a single line."""

    value: float
    low: float | None
    high: float | None


def estimate(columns: Sequence[Terms]) -> list[Estimate]:
    """Sum over lines, then the ratio, and its interval, for each (numerator, denominator).

    All columns belong to the same number of lines and are resampled together. Raises
    ZeroDivisionError where a denominator is zero on every line.
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
    below = resampled_sums(denominators)
    # A resample without a single token says nothing about a ratio to tokens.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(below > 0, resampled_sums(numerators) / below, np.nan)
    low, high = interval(ratios)
    return [
        Estimate(float(value), float(lower), float(upper))
        for value, lower, upper in zip(values, low, high, strict=True)
    ]


def resampled_sums(lines: Floats) -> Floats:
    """Sums over resampled lines, (n_resamples, k), of columns (n_lines, k)."""
    units = grouped(lines)
    return np.asarray(_weights(len(units)) @ units)


def interval(resampled: Floats) -> tuple[Floats, Floats]:
    """2.5 % and 97.5 % quantiles, (k,) each, of (n_resamples, k); NaN is left out."""
    quantile = np.nanquantile if np.isnan(resampled).any() else np.quantile
    low, high = quantile(resampled, (0.025, 0.975), axis=0)
    return low, high


def grouped(lines: Floats) -> Floats:
    """(n_lines, k) -> at most (4096, k): lines dealt in turn into groups and summed."""
    if len(lines) <= _MAX_UNITS:
        return lines
    padded = np.zeros((-(-len(lines) // _MAX_UNITS) * _MAX_UNITS, lines.shape[1]))
    padded[: len(lines)] = lines
    return np.asarray(padded.reshape(-1, _MAX_UNITS, lines.shape[1]).sum(axis=0))


@lru_cache(maxsize=2)
def _weights(n_units: int) -> Floats:
    """How often each unit is drawn in each resample, (n_resamples, n_units)."""
    generator = np.random.default_rng(_SEED)
    parts = []
    for _ in range(_RESAMPLES // _CHUNK):
        drawn = generator.integers(0, n_units, (_CHUNK, n_units))
        drawn += np.arange(_CHUNK)[:, None] * n_units  # each resample counts in a row of its own
        counts = np.bincount(drawn.ravel(), minlength=_CHUNK * n_units)
        parts.append(counts.reshape(_CHUNK, n_units).astype(np.float64))
    return np.concatenate(parts)


def ratio_rows(language: str, by_subject: Mapping[str, Mapping[str, Terms]]) -> list[Result]:
    """One row for each {subject: {metric: (numerators, denominators)}}, by metric, then subject.

    All terms are of the same units (n_units,): lines, words or numbers, which are resampled
    together. `n` is how many of them have a denominator. Where none has (a text without anything
    that could be cut, say), the metric says nothing, and no row is made.
    """
    keys = [
        (metric, subject)
        for metric in dict.fromkeys(name for of in by_subject.values() for name in of)
        for subject, of_subject in by_subject.items()
        if metric in of_subject and of_subject[metric][1].any()
    ]
    columns = [by_subject[subject][metric] for metric, subject in keys]
    return [
        Result(
            subject,
            language,
            metric,
            found.value,
            int(np.count_nonzero(denominators)),
            found.low,
            found.high,
        )
        for (metric, subject), found, (_, denominators) in zip(
            keys, estimate(columns), columns, strict=True
        )
    ]
