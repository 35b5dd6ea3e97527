"""Where every family of metrics begins and ends: lines of one language, and rows of Results.

Owns what is checked of lines, when a row is made and what its `n` is. Knows nothing of what a
metric means; the ratio and its interval are `metrics.estimate`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.evaluation.metrics import Terms, estimate
from vocabshift.results import Result

Texts = Mapping[str, Sequence[str]]
"""Lines by language; of parallel text, line i of each says the same."""


def checked(texts: Texts) -> Iterator[tuple[str, list[str]]]:
    """(language, lines) of the texts; TypeError for lines that are no str, CorpusError for none."""
    for language, given in texts.items():
        if isinstance(given, str | bytes):
            raise TypeError(f"the texts of {language!r} are {type(given).__name__}; give lines")
        lines = list(given)
        if not lines:
            raise CorpusError(f"no line of text for {language}; leave it out or give it text")
        for line in lines:
            if not isinstance(line, str):
                raise TypeError(f"a text of {language!r} is {type(line).__name__}; str is needed")
            try:
                line.encode()
            except UnicodeEncodeError as error:
                raise CorpusError(
                    f"a line of {language} holds half a surrogate pair, which is not text: {error}"
                ) from None
        yield language, lines


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
