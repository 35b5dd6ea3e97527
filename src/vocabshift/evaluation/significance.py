"""Is one tokenizer consistently better than another over languages?

Owns the paired comparison of two subjects on one metric, language by language: win rates (Indic
study, continued BPE), Wilcoxon's signed-rank test, its effect size (the matched-pairs rank-biserial
correlation, Kerby 2014), and Holm's correction over the pairs of subjects of one metric. Reads
Results alone; only metrics with a better direction, and rows that a loss does not make invalid, are
compared. Knows nothing of how a value was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from math import ldexp

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.metrics.metric import LOSS
from vocabshift.evaluation.metrics.registry import METRICS
from vocabshift.results import Results, stands_apart

MIN_LANGUAGES = 5
"""With fewer, no difference could be significant at 0.05 (two-sided, exact: 2 / 2^5 = 0.0625)."""

_EXACT_UP_TO = 50  # languages that differ: their 2^50 choices of signs are counted in 64 bits

Floats = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]


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
    p_value: float  # Wilcoxon signed-rank, two-sided, zeros left out; 1 where all are ties
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
    a direction, ImportError without scipy where more than 50 languages are compared.
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
    nonzero, ranks = _ranked(np.array(differences, dtype=np.float64))
    return float((ranks * np.sign(nonzero)).sum() / ranks.sum()) if len(nonzero) else 0.0


def _ranked(differences: Floats) -> tuple[Floats, Int64]:
    """The differences that are not zero, and twice the rank of each one's size; ties have one."""
    nonzero = differences[differences != 0]
    sizes = np.abs(nonzero)
    ascending = np.sort(sizes)
    before, up_to = (np.searchsorted(ascending, sizes, side=side) for side in ("left", "right"))
    return nonzero, before + up_to + 1


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


def _wilcoxon(differences: Floats) -> float:
    """Two-sided p value of the differences that are not zero; above 50 by the normal approximation.

    Exact: the share of all choices of signs whose rank sum is as far from its mean.
    """
    nonzero, ranks = _ranked(differences)
    if not len(nonzero):
        return 1.0
    if len(nonzero) > _EXACT_UP_TO:
        return _approximate(nonzero)
    ways = np.zeros(int(ranks.sum()) + 1, dtype=np.int64)  # choices of positive ones by their sum
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
    positive = int(ranks[nonzero > 0].sum())
    fewer = min(ways[: positive + 1].sum(), ways[positive:].sum())
    return min(1.0, ldexp(fewer, 1 - len(ranks)))


def _approximate(differences: Floats) -> float:
    try:
        from scipy.stats import wilcoxon
    except ImportError:
        raise ImportError(
            f"comparing subjects over more than {_EXACT_UP_TO} languages needs scipy: "
            "pip install 'vocabshift[stats]'"
        ) from None
    return float(wilcoxon(differences, method="approx").pvalue)


def _holm(pairs: Sequence[SubjectComparison]) -> list[SubjectComparison]:
    corrected = holm([pair.p_value for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True)]
