"""Is one tokenizer consistently better than another over languages?

Owns the paired comparison of two subjects on one metric, language by language: win rates (Indic
study, continued BPE), Wilcoxon's signed-rank test (scipy, extra `stats`), its effect size (the
matched-pairs rank-biserial correlation, Kerby 2014), and Holm's correction over the pairs of
subjects of one metric. Reads Results alone; only metrics with a better direction, and rows that a
loss does not make invalid, are compared. Knows nothing of how a value was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from vocabshift.evaluation.metrics.metric import LOSS
from vocabshift.evaluation.metrics.registry import METRICS
from vocabshift.results import Results, stands_apart

MIN_LANGUAGES = 5
"""With fewer, no difference could be significant at 0.05 (two-sided, exact: 2 / 2^5 = 0.0625)."""

_EXACT_UP_TO = 50  # languages; scipy's own limit for the exact distribution


@dataclass(frozen=True, slots=True)
class SubjectComparison:
    """Subjects `a` and `b` on one metric, over the languages that both have."""

    metric: str
    a: str
    b: str
    n: int  # languages
    wins_a: int  # languages where a is better
    wins_b: int
    win_rate: float  # of a, a tie counts half
    mean_difference: float  # of a from b, in the metric's unit
    relative_difference: float | None  # mean of (a - b) / b; None where b is 0 somewhere
    effect_size: float  # matched-pairs rank-biserial in [-1, 1]; above 0: a is better
    p_value: float  # Wilcoxon signed-rank, two-sided; 1 where all are ties
    p_holm: float  # corrected over the pairs of subjects of this metric

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)


def compare_subjects(
    results: Results, metrics: Sequence[str] | None = None, *, min_languages: int = MIN_LANGUAGES
) -> list[SubjectComparison]:
    """All pairs of subjects on each metric, by metric and then in the order of the subjects.

    `metrics`: those of `results` that have a better direction, by default. A pair that shares
    fewer than `min_languages` valid languages is left out. Raises ValueError for a metric without
    a direction, ImportError without scipy where there is something to compare.
    """
    names = results.distinct("metric") if metrics is None else list(metrics)
    compared: list[SubjectComparison] = []
    for name in names:
        metric = METRICS.get(name)
        if metric is None or not metric.is_compared or metric.better == "neither":
            if metrics is not None:
                raise ValueError(f"{name} has no better direction over languages to compare by")
            continue
        pairs = _pairs(results, name, sign=metric.sign)
        compared += _holm([pair for pair in pairs if pair.n >= min_languages])
    return compared


def rank_biserial(differences: Sequence[float]) -> float:
    """Matched-pairs rank-biserial correlation: (W+ - W-) / (W+ + W-); 0 where all are zero.

    W are sums of the ranks of |differences|, zeros left out, ties given their mean rank.
    """
    nonzero = np.array([d for d in differences if d], dtype=np.float64)
    if not len(nonzero):
        return 0.0
    _, place, times = np.unique(np.abs(nonzero), return_inverse=True, return_counts=True)
    last = np.cumsum(times)
    ranks = (last - (times - 1) / 2)[place]
    return float((ranks * np.sign(nonzero)).sum() / ranks.sum())


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979) of p values, in their order."""
    corrected = [0.0] * len(p_values)
    reached = 0.0
    ascending = sorted(range(len(p_values)), key=lambda number: p_values[number])
    for rank, number in enumerate(ascending):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[number]))
        corrected[number] = reached
    return corrected


def _pairs(results: Results, metric: str, sign: int) -> list[SubjectComparison]:
    lossy = {(row.subject, row.language) for row in results.where(metric=LOSS) if row.value > 0}
    values: dict[str, dict[str, float]] = {}
    for row in results.where(metric=metric):
        of_subject = values.setdefault(row.subject, {})
        is_valid = metric == LOSS or (row.subject, row.language) not in lossy
        if is_valid and not stands_apart(row.language):
            of_subject[row.language] = row.value
    return [
        _compare(metric, {a: values[a], b: values[b]}, sign)
        for a, b in combinations(values, 2)
        if values[a].keys() & values[b].keys()
    ]


def _compare(metric: str, pair: dict[str, dict[str, float]], sign: int) -> SubjectComparison:
    """`pair`: values by language of the two subjects; `sign`: 1 where more is better, else -1."""
    (a, of_a), (b, of_b) = pair.items()
    shared = [language for language in of_a if language in of_b]
    differences = np.array([of_a[language] - of_b[language] for language in shared])
    theirs = np.array([of_b[language] for language in shared])
    gains = differences * sign
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    return SubjectComparison(
        metric,
        a,
        b,
        len(shared),
        wins,
        losses,
        (wins + (len(shared) - wins - losses) / 2) / len(shared),
        float(differences.mean()),
        float((differences / theirs).mean()) if theirs.all() else None,
        rank_biserial(gains.tolist()),
        _wilcoxon(gains),
        1.0,
    )


def _wilcoxon(differences: np.ndarray) -> float:
    """Two-sided p value; exact without ties and zeros, else by the normal approximation."""
    if not differences.any():
        return 1.0
    try:
        from scipy.stats import wilcoxon
    except ImportError:
        raise ImportError(
            "comparing subjects needs scipy: pip install 'vocabshift[stats]'"
        ) from None
    sizes = np.abs(differences)
    has_ties = len(np.unique(sizes)) < len(sizes) or not sizes.all()
    is_exact = not has_ties and len(sizes) <= _EXACT_UP_TO
    if is_exact:
        ranks = 1 + np.argsort(np.argsort(sizes))
        return _exact(len(sizes), int(ranks[differences > 0].sum()))
    return float(wilcoxon(differences, method="approx").pvalue)


@lru_cache(maxsize=1 << 12)
def _exact(n: int, rank_sum: int) -> float:
    """The exact p value, which says no more than the ranks of the `n` differences: the sum of
    those of positive ones. Found for any differences that have it; scipy's call is slow."""
    from scipy.stats import wilcoxon

    signed = -np.arange(1, n + 1)
    for rank in range(n, 0, -1):
        if rank <= rank_sum:
            signed[rank - 1] = rank
            rank_sum -= rank
    return float(wilcoxon(signed, method="exact").pvalue)


def _holm(pairs: Sequence[SubjectComparison]) -> list[SubjectComparison]:
    corrected = holm([pair.p_value for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True)]
