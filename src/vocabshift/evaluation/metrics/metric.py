"""The class Metric: one value from which measuring, tables, pages, help and docs are made.

Owns the description, and the ways to compute a figure from the counts. A metric is one `Metric` in
the file of its family; `registry` joins the families.

And the intervals of its figures: a percentile bootstrap over lines (Efron 1979), of ratios and of
other functions of sums. The resamples depend on the number of lines alone. The seed is fixed, so
the same input gives the same interval, and all subjects and languages with the same number of lines
are resampled together. Above 4,096 lines, lines are assigned to that many groups and the groups are
resampled, which changes an interval's width by about one per cent and bounds the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.counts import Counts, Ints, LineCounts
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


def resampled_sums(lines: Floats, *, stream: int = 0) -> Floats:
    """Sums over resampled lines, (n_resamples, k), of columns (n_lines, k).

    stream: texts whose sums are added need one each, or those of equal length are resampled alike.
    """
    units = grouped(lines)
    return np.asarray(_weights(len(units), stream) @ units)


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


@lru_cache(maxsize=8)  # lines, numbers, digits, and words of a few languages
def _weights(n_units: int, stream: int) -> Floats:
    """How often each unit is drawn in each resample, (n_resamples, n_units)."""
    generator = np.random.default_rng([_SEED, stream] if stream else _SEED)
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


T = TypeVar("T")

Better = Literal["lower", "higher", "neither"]
Need = (
    Literal["text", "base", "parallel", "reference", "ranks", "words", "subjects"]
    | Literal["morphemes", "code switching"]
)
"""What a metric needs besides a tokenizer: texts, a base tokenizer, parallel texts, a language that
others are compared with, words by frequency rank, words at all (scripts without spaces have none
unless ICU finds them), two subjects, or data of its own."""

LOSS = "loss_rate"
"""The share of lines that a tokenizer does not give back. Above zero, metrics that are
`is_spoilt_by_loss` are not valid for this subject and language."""


@dataclass(frozen=True, eq=False)
class OnText:
    """One subject on the text of one language: what a ratio is computed from."""

    counts: Counts
    token_hashes: Callable[[], Ints]  # by id, as `TokenFacts.hashes`
    row_count: int  # the highest id plus one
    vocab_size: int
    renyi_alpha: float
    base_counts: Counts | None = None
    base_hashes: Ints | None = None
    reference: LineCounts | None = None  # the subject's counts on the reference language
    _known: dict[Any, Any] = field(default_factory=dict)

    @property
    def lines(self) -> LineCounts:
        """The counts of each line."""
        return self.counts.lines

    @property
    def base(self) -> Counts:
        """Return the base tokenizer's counts of the same lines; ValueError without a base."""
        if self.base_counts is None:
            raise ValueError("this metric compares with a base tokenizer; give one as base")
        return self.base_counts

    @cached_property
    def ones(self) -> Ints:
        """(n_lines,): the denominator of a mean over lines."""
        return np.ones(self.lines.n_lines, dtype=np.int64)

    def once(self, compute: Callable[[OnText], T]) -> T:
        """Return the result of `compute` for this text, computed once for all metrics."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        found: T = self._known[compute]
        return found


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two sums over lines (IST's micro-average), with its bootstrap interval."""

    terms: Callable[[OnText], Terms]  # numerator and denominator of each line
    finish: Callable[[OnText, Estimate], Estimate] = lambda _, found: found
    may_lack: bool = False  # no row where the denominator is zero on every line


@dataclass(frozen=True, slots=True)
class Spread:
    """A function of the token totals of all languages of parallel text; over the last axis."""

    function: Callable[[npt.ArrayLike], Floats]


@dataclass(frozen=True, slots=True)
class OfVocabulary:
    """Figures of a vocabulary by language, script or `WHOLE`; takes `vocabulary.UsedVocabulary`."""

    values: Callable[[Any], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class OfPair:
    """A figure of two vocabularies, each the sorted hashes of its tokens."""

    function: Callable[[Ints, Ints], float]


@dataclass(frozen=True, slots=True)
class WithFamily:
    """Computed together with its family: see `measure`, and `scoring` for models."""


Formula = Ratio | Spread | OfVocabulary | OfPair | WithFamily


@dataclass(frozen=True, slots=True)
class Metric:
    """All that is known of a metric."""

    name: str  # in Results and for `--metrics`
    group: str  # of `GROUPS`: the heading in help and docs
    label: str  # for people
    note: str  # what it is, in a few words
    better: Better = "neither"
    formula: Formula = field(default_factory=WithFamily)
    needs: frozenset[Need] = frozenset({"text"})
    is_spoilt_by_loss: bool = False  # not valid where a tokenizer loses text
    has_bars: bool = False  # a report draws bars for each language; few, the page must stay small
    is_compared: bool = False  # subjects are tested over languages (Wilcoxon)
    is_whole: bool = False  # its row `WHOLE` is about the tokenizer and no text
    place: str = "language"  # what stands in place of a language: "script", "with" (a subject)
    decimals: int | None = None  # in tables; None: by the size of the values

    @property
    def counts_lines(self) -> bool:
        """Whether `Result.n` is a number of lines; others count tokens, numbers or words."""
        return "text" in self.needs and self.group != "vocabulary"

    @property
    def sign(self) -> int:
        """1 where higher is better, -1 where lower is, 0 where neither."""
        return {"higher": 1, "lower": -1, "neither": 0}[self.better]


def needing(*needs: Need) -> frozenset[Need]:
    """Texts and `needs`."""
    return frozenset({"text", *needs})
