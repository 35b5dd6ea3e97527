"""How evenly the tokens of a text are spread over the vocabulary: Rényi entropy and efficiency.

Zouhar et al. (2023), "Tokenization and the Noiseless Channel": H_a(p) = log2(sum p^a) / (1 - a),
Shannon's entropy for a = 1, with a = 2.5 by default; efficiency is H_a / log2 |V|. |V| is the size
of the vocabulary (IST, E.4), not the number of tokens that the text happens to use.

Intervals: the entropy is a function of one ratio of sums over lines to first order. With n_i the
count of token i and N all tokens, log2 S = log2(sum n^a) - a log2 N changes by
a (dA / A - dN / N) where A = sum over all tokens of n_i^(a-1). So the ratio A / N is resampled over
lines like any other, and H_a moves by a / (1 - a) log2 of its change. Held against the bootstrap of
the entropy itself in the tests; it costs no more than a ratio and lacks that one's downward bias
from tokens that a resample misses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.counts import Counts
from vocabshift.evaluation.statistics.bootstrap import Estimate, Terms, interval, resampled_sums
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
    top = shares.max()  # taken out of the sum: p^a is no number above zero for a large order
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


def _per_line(values: npt.NDArray[np.float64], counts: Counts) -> npt.NDArray[np.float64]:
    """Sums over the tokens of each line, (n_lines,)."""
    line = np.repeat(np.arange(counts.lines.n_lines), counts.lines.n_tokens)
    return np.asarray(np.bincount(line, values, counts.lines.n_lines), dtype=np.float64)


# Does a tokenizer need as many tokens in every language to say the same?
#
# Over parallel text: the spread of the token totals of languages, and each language's premium over
# a reference. Definitions: Gini = sum_ij |t_i - t_j| / (2 n^2 mean); normalized variance =
# population variance / mean^2; coefficient of variation = its square root. The Indic study calls
# its Table 4 "normalized variance", but its figures (0.071 beside a Gini of 0.039 for 17 languages)
# can only be the coefficient of variation. Intervals resample lines, the same ones in all
# languages.


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
