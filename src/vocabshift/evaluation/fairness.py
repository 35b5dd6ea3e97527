"""Does a tokenizer need as many tokens in every language to say the same?

Over parallel text: the spread of the token totals of languages, and each language's premium over a
reference. Definitions: Gini = sum_ij |t_i - t_j| / (2 n^2 mean); normalized variance = population
variance / mean^2; coefficient of variation = its square root. The Indic study calls its Table 4
"normalized variance", but its figures (0.071 beside a Gini of 0.039 for 17 languages) can only be
the coefficient of variation. Intervals resample lines, the same ones in all languages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.bootstrap import Estimate, interval, resampled_sums
from vocabshift.text.languages import find_language

Floats = npt.NDArray[np.float64]
REFERENCE = "English"
"""The language that premiums are counted from, where none is named."""


def gini(totals: npt.ArrayLike) -> Floats:
    """Gini coefficient over the last axis: 0 where all are equal, at most 1 - 1/n."""
    values = np.sort(np.asarray(totals, dtype=np.float64), axis=-1)
    n = values.shape[-1]
    weights = 2 * np.arange(1, n + 1) - n - 1
    return np.asarray((values * weights).sum(axis=-1) / (n * values.sum(axis=-1)))


def normalized_variance(totals: npt.ArrayLike) -> Floats:
    """Population variance over the squared mean, over the last axis."""
    values = np.asarray(totals, dtype=np.float64)
    return np.asarray(values.var(axis=-1) / values.mean(axis=-1) ** 2)


def coefficient_of_variation(totals: npt.ArrayLike) -> Floats:
    """Population standard deviation over the mean, over the last axis."""
    return np.asarray(np.sqrt(normalized_variance(totals)))


SPREADS: Mapping[str, Callable[[npt.ArrayLike], Floats]] = {
    "gini": gini,
    "normalized_variance": normalized_variance,
    "coefficient_of_variation": coefficient_of_variation,
}


def spread(names: Sequence[str], n_tokens: Sequence[npt.NDArray[np.int64]]) -> list[Estimate]:
    """Each spread with its interval; `n_tokens` holds (n_lines,) for each language."""
    lines = np.stack(n_tokens, axis=1).astype(np.float64)
    totals = lines.sum(axis=0)
    if len(lines) == 1:
        return [Estimate(float(SPREADS[name](totals)), None, None) for name in names]
    resampled = resampled_sums(lines)
    estimates = []
    for name in names:
        low, high = interval(SPREADS[name](resampled))
        estimates.append(Estimate(float(SPREADS[name](totals)), float(low), float(high)))
    return estimates


def find_reference(languages: Sequence[str], reference: str | None = None) -> str:
    """The label of the reference language; ValueError where it is not among the texts.

    Without `reference`, the label that means English.
    """
    if reference is not None:
        if reference not in languages:
            raise ValueError(
                f"the reference language {reference!r} is not among the texts: "
                f"{', '.join(languages)}"
            )
        return reference
    for label in languages:
        language = find_language(label)
        if language is not None and language.name == REFERENCE:
            return label
    raise ValueError(
        "premium compares with a reference language; no text is labelled as English: name one "
        f"of {', '.join(languages)} as reference (--reference)"
    )
