"""Spread of tokens over languages, by hand and against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest

from reference import metrics as slow
from vocabshift.evaluation.metrics import distribution as fairness


def test_gini_by_hand() -> None:
    """Equal totals: 0. One of two has all: 1/2. 1, 2, 3, 4: 1/4."""
    assert 0.0 == fairness.gini([5, 5, 5])
    assert 0.5 == fairness.gini([0, 8])
    assert pytest.approx(0.25) == float(fairness.gini([4, 1, 3, 2]))


def test_gini_is_the_definition() -> None:
    """Whatever the totals, it is the mean difference of all pairs over twice the mean."""
    generator = np.random.default_rng(2)
    totals = generator.integers(1, 1000, (20, 17))
    expected = [slow.gini(row.tolist()) for row in totals]
    np.testing.assert_allclose(fairness.gini(totals), expected)


def test_variance_by_hand() -> None:
    """Of 2 and 4: variance 1, mean 3."""
    assert pytest.approx(1 / 9) == float(fairness.normalized_variance([2, 4]))
    assert pytest.approx(1 / 3) == float(fairness.coefficient_of_variation([2, 4]))
    assert 0.0 == fairness.normalized_variance([7, 7])


def test_the_study_prints_a_coefficient_of_variation() -> None:
    """No totals of 17 languages have a Gini of 0.039 and a variance over mean squared of 0.071:
    for a given Gini that is largest where one language stands out."""
    stands_out = np.ones(17)
    while fairness.gini(stands_out) < 0.039:
        stands_out[0] += 0.01
    assert fairness.normalized_variance(stands_out) < 0.03
    assert fairness.coefficient_of_variation(stands_out) > 0.071


def test_spread_resamples_lines_of_all_languages_together() -> None:
    """Where every line has the same ratio between languages the spread has no spread."""
    line = np.random.default_rng(1).integers(5, 50, 300)
    same = fairness.spread_estimate(fairness.gini, [line, 3 * line])
    assert pytest.approx((0.25, 0.25, 0.25)) == (same.value, same.low, same.high)
    other = np.random.default_rng(2).integers(5, 50, 300)
    for spread in (fairness.gini, fairness.normalized_variance, fairness.coefficient_of_variation):
        wide = fairness.spread_estimate(spread, [line, other])
        assert wide.low <= wide.value <= wide.high
    alone = fairness.spread_estimate(fairness.gini, [line[:1], other[:1]])
    assert (None, None) == (alone.low, alone.high)


def test_the_reference_is_english_unless_named() -> None:
    """A label that means English is found; any other must be named and be there."""
    assert "eng" == fairness.find_reference(["hi", "eng"])
    assert "en_Latn" == fairness.find_reference(["hi", "en_Latn"])
    assert "hi" == fairness.find_reference(["hi", "en"], "hi")
    with pytest.raises(ValueError, match="name one of hi, ta"):
        fairness.find_reference(["hi", "ta"])
    with pytest.raises(ValueError, match="'xx' is not among the texts: hi, ta"):
        fairness.find_reference(["hi", "ta"], "xx")
