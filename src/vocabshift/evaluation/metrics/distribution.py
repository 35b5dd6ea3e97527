"""How evenly tokens are spread: over the vocabulary (Rényi) and over languages (fairness).

Rényi. Zouhar et al. (2023), "Tokenization and the Noiseless Channel" (arXiv:2306.16842):
H_a(p) = log2(sum p^a) / (1 - a), Shannon's entropy for a = 1, with a = 2.5 by default; efficiency
is H_a / log2 |V|. |V| is the size of the vocabulary (IST, E.4), not the number of tokens that the
text happens to use.

Intervals: the entropy is a function of one ratio of sums over lines to first order. With n_i the
count of token i and N all tokens, log2 S = log2(sum n^a) - a log2 N changes by
a (dA / A - dN / N) where A = sum over all tokens of n_i^(a-1). So the ratio A / N is resampled over
lines like any other, and H_a changes by a / (1 - a) log2 of its change. The tests compare it with
the bootstrap of the entropy itself. It costs no more than a ratio, and does not have that
bootstrap's downward bias from tokens that a resample misses.

Fairness, over parallel text: does a tokenizer need as many tokens in every language to say the
same? Gini = sum_ij |t_i - t_j| / (2 n^2 mean) of the token totals; normalized variance =
population variance / mean^2; coefficient of variation = its square root. The Indic study calls its
Table 4 "normalized variance", but its figures (0.071, with a Gini of 0.039 for 17 languages) can
only be the coefficient of variation. Intervals resample lines, the same ones in all languages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.counts import Counts
from vocabshift.evaluation.metrics.metric import (
    Estimate,
    Floats,
    Metric,
    OnText,
    Ratio,
    Spread,
    Terms,
    interval,
    needing,
    resampled_sums,
)
from vocabshift.text.languages import find_language

ALPHA = 2.5
"""Zouhar et al.'s default order."""


@dataclass(frozen=True, slots=True)
class Renyi:
    """The entropy of one text as a function of a ratio of sums over lines."""

    terms: Terms
    entropy: float  # bits
    from_ratio: Callable[[float, float], float]  # (estimated ratio, another ratio) -> entropy

    def estimate(self, ratio: Estimate, scale: float = 1.0) -> Estimate:
        """Entropy, divided by `scale`, with the interval that follows from the ratio's."""
        if ratio.low is None or ratio.high is None:
            return Estimate(self.entropy / scale, None, None)
        ends = sorted(self.from_ratio(ratio.value, end) / scale for end in (ratio.low, ratio.high))
        return Estimate(self.entropy / scale, *ends)


def check_alpha(alpha: float) -> float:
    """The order, if it is one: a number above 0."""
    if not 0 < alpha < float("inf"):
        raise ValueError(f"the order of Rényi's entropy is {alpha}; it must be a number above 0")
    return float(alpha)


def renyi_entropy(frequencies: npt.ArrayLike, alpha: float = ALPHA) -> float:
    """Rényi entropy in bits of a distribution given by counts; zeros count for nothing."""
    counts = np.asarray(frequencies, dtype=np.float64)
    shares = counts[counts > 0] / counts.sum()
    if alpha == 1:
        return float(-(shares * np.log2(shares)).sum())
    top = shares.max()  # factored out of the sum: p^a underflows to zero for a large order
    total = np.log2(((shares / top) ** alpha).sum())
    return float(alpha / (1 - alpha) * np.log2(top) + total / (1 - alpha))


def renyi(counts: Counts, row_count: int, alpha: float = ALPHA) -> Renyi:
    """The entropy of the tokens of a text, ready for the bootstrap over its lines."""
    frequencies = counts.frequencies(row_count)
    entropy = renyi_entropy(frequencies, alpha)
    n_tokens = counts.lines.n_tokens
    used = np.flatnonzero(frequencies)
    shares = frequencies[used] / n_tokens.sum()
    of_token = np.zeros(len(frequencies))
    of_token[used] = (  # up to a factor
        -np.log2(shares) if alpha == 1 else (shares / shares.max()) ** (alpha - 1)
    )
    terms = (_per_line(of_token[counts.ids], counts), n_tokens)
    if alpha == 1:
        return Renyi(terms, entropy, lambda _, ratio: ratio)
    step = alpha / (1 - alpha)
    most = float(np.log2(len(used)))  # no resample has more tokens than these

    def from_ratio(at: float, ratio: float) -> float:
        moved = np.log2(ratio / at) if ratio > 0 else -np.inf
        return float(min(max(entropy + step * moved, 0.0), most))

    return Renyi(terms, entropy, from_ratio)


def _per_line(values: Floats, counts: Counts) -> Floats:
    """Sums over the tokens of each line, (n_lines,)."""
    line = np.repeat(np.arange(counts.lines.n_lines), counts.lines.n_tokens)
    return np.asarray(np.bincount(line, values, counts.lines.n_lines), dtype=np.float64)


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


def spread_estimate(
    spread: Callable[[npt.ArrayLike], Floats], n_tokens: Sequence[npt.NDArray[np.int64]]
) -> Estimate:
    """A spread with its interval; `n_tokens` holds (n_lines,) for each language."""
    lines = np.stack(n_tokens, axis=1).astype(np.float64)
    value = float(spread(lines.sum(axis=0)))
    if len(lines) == 1:
        return Estimate(value, None, None)
    low, high = interval(spread(resampled_sums(lines)))
    return Estimate(value, float(low), float(high))


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


def _entropy(on: OnText) -> Renyi:
    return renyi(on.counts, on.row_count, on.renyi_alpha)


def _efficiency(on: OnText, ratio: Estimate) -> Estimate:
    # Of one token alone the entropy is 0 as well.
    return on.once(_entropy).estimate(ratio, math.log2(on.vocab_size) or 1.0)


def _spread(
    name: str, label: str, note: str, function: Callable[[npt.ArrayLike], Floats]
) -> Metric:
    return Metric(
        name,
        "fairness",
        label,
        note,
        "lower",
        Spread(function),
        needing("parallel"),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_whole=True,
    )


METRICS = (
    Metric(
        "renyi_entropy",
        "distribution",
        "Rényi entropy",
        "of the distribution of tokens, in bits",
        formula=Ratio(
            lambda on: on.once(_entropy).terms,
            lambda on, ratio: on.once(_entropy).estimate(ratio),
        ),
        is_spoilt_by_loss=True,
        has_bars=True,
    ),
    Metric(
        "renyi_efficiency",
        "distribution",
        "Rényi efficiency",
        "entropy / log2 of the vocabulary size",
        "higher",
        Ratio(lambda on: on.once(_entropy).terms, _efficiency),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_compared=True,
    ),
    _spread("gini", "Gini coefficient", "of tokens over languages", gini),
    _spread(
        "normalized_variance",
        "normalized variance",
        "of tokens over languages, by the squared mean",
        normalized_variance,
    ),
    _spread(
        "coefficient_of_variation",
        "coefficient of variation",
        "of tokens over languages",
        coefficient_of_variation,
    ),
    Metric(
        "premium",
        "fairness",
        "premium",
        "tokens / tokens of the reference language",
        "lower",
        Ratio(lambda on: (on.lines.n_tokens, _reference_tokens(on))),
        needing("parallel", "reference"),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_compared=True,
    ),
)


def _reference_tokens(on: OnText) -> npt.NDArray[np.int64]:
    if on.reference is None:
        raise ValueError("premium compares with a reference language; name one")
    return on.reference.n_tokens
