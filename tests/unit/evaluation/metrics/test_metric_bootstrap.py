"""Intervals of ratios by the bootstrap over lines."""

from __future__ import annotations

import numpy as np
import pytest

from vocabshift.evaluation.metrics.metric import estimate


def test_interval_agrees_with_the_delta_method() -> None:
    """The interval of a mean is close to value ± 1.96 standard errors."""
    values = np.random.default_rng(7).poisson(20, 900)
    (found,) = estimate([(values, np.ones_like(values))])
    error = 1.96 * values.std() / np.sqrt(len(values))
    assert found.low is not None
    assert found.high is not None
    assert pytest.approx(values.mean() - error, abs=0.04) == found.low
    assert pytest.approx(values.mean() + error, abs=0.04) == found.high


def test_interval_is_reproducible_and_shared() -> None:
    """The seed is fixed, and columns are resampled together."""
    generator = np.random.default_rng(3)
    column = (generator.integers(1, 30, 50), generator.integers(1, 9, 50))
    first, second = estimate([column, column])
    assert first == second == estimate([column])[0]
    (constant,) = estimate([(3 * column[0], column[0])])
    assert (3.0, 3.0, 3.0) == (constant.value, constant.low, constant.high)


def test_intervals_are_those_of_the_version_before() -> None:
    """Reports are compared across versions: another seed would move every interval."""
    column = (np.arange(1, 41) ** 2, np.arange(3, 43))
    (found,) = estimate([column])
    assert (found.low, found.high) == pytest.approx(
        (21.263641500618732, 27.50011615109469), rel=1e-9
    )


def test_many_lines_are_grouped() -> None:
    """Above the limit the interval rests on groups and stays as wide as it should be."""
    values = np.random.default_rng(5).poisson(9, 20_001)
    (found,) = estimate([(values, np.ones_like(values))])
    assert pytest.approx(values.mean()) == found.value
    assert found.low is not None
    assert found.high is not None
    width = 2 * 1.96 * values.std() / np.sqrt(len(values))
    assert pytest.approx(width, rel=0.1) == found.high - found.low


def test_one_line_has_no_interval() -> None:
    """Nothing can be said about spread from one line."""
    (found,) = estimate([(np.array([4]), np.array([2]))])
    assert (2.0, None, None) == (found.value, found.low, found.high)


def test_zero_denominators() -> None:
    """A denominator of nothing but zeros is refused; a few zeros do no harm."""
    with pytest.raises(ZeroDivisionError, match="zero on every line"):
        estimate([(np.array([1, 2]), np.array([0, 0]))])
    (found,) = estimate([(np.array([4, 4]), np.array([0, 2]))])
    assert 4.0 == found.value
    assert 2.0 == found.low
