"""Rows of Results from terms of one language: what every linguistic family ends with.

Owns when a row is made and what its `n` is. Knows nothing of what a metric means; the ratio and its
interval are `bootstrap.estimate`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from vocabshift.evaluation.bootstrap import Terms, estimate
from vocabshift.results import Result

Family = Mapping[str, tuple[Literal["lower", "higher", "neither"], str]]
"""Metrics of a family, by name: which values are better, and what it is in a few words."""


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
