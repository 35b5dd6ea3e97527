"""Paired comparisons of bits per byte, held against scipy and against plain sums."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from vocabshift.evaluation.scoring.score import DocumentScore
from vocabshift.evaluation.scoring.score_models import (
    compare_scores,
    exchange_p,
    with_total,
)
from vocabshift.report.tables import score_comparisons

SIZES = (40, 10, 25, 60, 8, 30)


def documents(nats: list[float], language: str = "en") -> list[DocumentScore]:
    return [DocumentScore(language, size, value) for size, value in zip(SIZES, nats, strict=False)]


A = [50.0, 14.0, 30.0, 70.0, 10.0, 33.0]
B = [48.0, 15.0, 29.0, 66.0, 9.0, 31.5]


def test_the_difference_is_of_all_bits_over_all_bytes() -> None:
    """And its interval is that of resampled documents, both models drawn together."""
    (pair,) = compare_scores({"a": documents(A), "b": documents(B)})
    assert (pair.metric, pair.a, pair.b, pair.language) == ("bits_per_byte", "a", "b", "en")
    assert pair.n == 6
    assert pair.difference == pytest.approx((sum(A) - sum(B)) / math.log(2) / sum(SIZES))
    generator = np.random.default_rng(1)
    draws = generator.integers(0, 6, (20_000, 6))
    gains = (np.array(A) - np.array(B)) / math.log(2)
    plain = gains[draws].sum(axis=1) / np.array(SIZES)[draws].sum(axis=1)
    low, high = np.quantile(plain, (0.025, 0.975))
    assert pair.ci_low == pytest.approx(low, abs=0.005)
    assert pair.ci_high == pytest.approx(high, abs=0.005)


def test_a_few_documents_are_exchanged_in_every_way() -> None:
    """The p value is the share of all 2^n signs whose sum is as far from 0."""
    gains = np.array(A) - np.array(B)
    sums = [abs(np.dot(signs, gains)) for signs in product((1, -1), repeat=6)]
    expected = np.mean([value >= abs(gains.sum()) - 1e-9 for value in sums])
    assert exchange_p(gains) == expected
    assert exchange_p(gains) == exchange_p(-gains)
    assert exchange_p(np.zeros(5)) == 1.0
    assert exchange_p(np.ones(1)) == 1.0


@pytest.mark.parametrize("shift", [0.0, 0.12, 0.3])
def test_many_documents_agree_with_scipy(shift: float) -> None:
    """Random exchanges give the p value of scipy's paired permutation test, within their noise."""
    stats = pytest.importorskip("scipy.stats")
    gains = np.random.default_rng(3).normal(shift, 1.0, 200)
    found = stats.permutation_test(
        (gains, np.zeros(200)),
        lambda x, y, axis: (x - y).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        batch=2_000,
        rng=np.random.default_rng(4),
    )
    assert exchange_p(gains) == pytest.approx(found.pvalue, abs=0.015)


def test_the_exchange_that_was_seen_is_counted() -> None:
    """(1 + k) / (1 + N): a p value of 0, which k / N gives, is never right (Phipson 2010)."""
    assert exchange_p(np.ones(200)) == 1 / 10_000


def test_documents_in_their_thousands_are_grouped() -> None:
    """A difference of nothing is not found, one of a tenth of the spread is."""
    gains = np.random.default_rng(5).normal(0.0, 1.0, 9_000)
    gains -= gains.mean()
    assert exchange_p(gains) > 0.9
    assert exchange_p(gains + 0.1) < 0.01


def test_every_pair_of_every_language_is_corrected_by_itself() -> None:
    """Holm's correction runs over the three pairs of a language."""
    scores = {
        name: with_total([*documents(values), *documents(values[::-1], "hi")])
        for name, values in (("a", A), ("b", B), ("c", [v + 9 for v in A]))
    }
    pairs = compare_scores(scores)
    assert [(p.language, p.a, p.b) for p in pairs] == [
        (language, *names)
        for language in ("en", "hi", "all")
        for names in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert [p.n for p in pairs] == [6] * 6 + [12] * 3
    ac, bc = pairs[1], pairs[2]
    assert (ac.p_value, bc.p_value) == (2 / 64, 2 / 64)
    assert ac.p_holm == pytest.approx(3 * 2 / 64)
    assert "a - b" in [column.header for column in score_comparisons(pairs).columns]


def test_a_small_difference_is_not_shown_as_zero() -> None:
    """Rows that an extension adds cost a hair in every document: the sign is certain."""
    of = {name: with_total(documents(values)) for name, values in (("a", A), ("b", A))}
    [same] = compare_scores(of)
    for difference, wanted in ((0.0, "0"), (-1.4e-5, "-1.4e-05"), (0.00124, "+0.0012")):
        table = score_comparisons([replace(same, difference=difference)])
        assert [wanted] == list(table.columns[4].cells)


def test_what_cannot_be_paired() -> None:
    """Other documents are refused; a subject that loses text of a language is left out there."""
    with pytest.raises(ValueError, match="same documents"):
        compare_scores({"a": documents(A), "b": documents(B[:5])})
    lost = [*documents(B[:5]), DocumentScore("en", SIZES[5], 1.0, is_lost=True)]
    assert compare_scores({"a": documents(A), "b": lost}) == []
    assert compare_scores({"a": documents(A)}) == []


def test_one_language_has_no_total() -> None:
    """Neither has text that is called "all" already."""
    one = documents(A)
    assert with_total(one) == one
    both = [*one, *documents(B, "all")]
    assert with_total(both) == both
