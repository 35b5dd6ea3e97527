"""The class Metric: one value from which measuring, tables, pages, help and docs are made.

Owns the description, and the ways to compute a figure from the counts. A metric is one `Metric` in
the file of its family; `registry` joins the families.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.counts import Counts, Floats, Ints, LineCounts
from vocabshift.evaluation.metrics.bootstrap import Estimate, Terms

T = TypeVar("T")

Better = Literal["lower", "higher", "neither"]
Need = (
    Literal["text", "base", "parallel", "reference", "ranks", "subjects", "rapidfuzz"]
    | Literal["morphemes", "code switching"]
)
"""What a metric needs besides a tokenizer: texts, a base tokenizer, parallel texts, a language that
others are compared with, words by frequency rank, two subjects, a package, or data of its own."""

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
    def sign(self) -> int:
        """1 where higher is better, -1 where lower is, 0 where neither."""
        return {"higher": 1, "lower": -1, "neither": 0}[self.better]


def needing(*needs: Need) -> frozenset[Need]:
    """Texts and `needs`."""
    return frozenset({"text", *needs})
