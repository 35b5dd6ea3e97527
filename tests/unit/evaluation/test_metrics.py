"""Ratio metrics and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from vocabshift.evaluation import metrics
from vocabshift.evaluation.counts import LineCounts


def _counts(n_tokens, n_single=(0, 0), n_bytes=(10, 20), n_characters=(5, 10), n_words=(2, 3)):
    columns = (n_tokens, n_single, n_bytes, n_characters, n_words)
    return LineCounts(*(np.array(column, dtype=np.int64) for column in columns))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fertility", 2.0),
        ("bytes_per_token", 3.0),
        ("characters_per_token", 1.5),
        ("tokens_per_character", 10 / 15),
        ("sequence_reduction", 20 / 30),
        ("single_character_rate", 0.3),
        ("normalized_sequence_length", 0.5),
    ],
)
def test_definitions(name: str, value: float) -> None:
    """Every metric is the ratio of sums over lines, not the mean of ratios."""
    terms = metrics.terms(name, _counts((4, 6), n_single=(1, 2)), _counts((13, 7)))
    (found,) = metrics.estimate([terms])
    assert pytest.approx(value) == found.value


def test_every_name_has_a_definition() -> None:
    """The known names are those that can be computed."""
    for name in metrics.KNOWN:
        metrics.terms(name, _counts((1, 1)), _counts((1, 1)))


def test_names_are_checked() -> None:
    """An unknown name is answered with the known ones; a repeated one counts once."""
    assert ("fertility",) == metrics.check_names("fertility")
    assert ("fertility",) == metrics.check_names(["fertility", "fertility"])
    with pytest.raises(ValueError, match=r"'fertilty'; known are: fertility, bytes_per_token"):
        metrics.check_names(["fertilty"])
    with pytest.raises(ValueError, match="no metric is given"):
        metrics.check_names([])


def test_a_base_is_needed() -> None:
    """A comparison without a base is refused."""
    with pytest.raises(ValueError, match="base"):
        metrics.terms("normalized_sequence_length", _counts((1, 1)))


def test_interval_agrees_with_the_delta_method() -> None:
    """The interval of a mean is close to value ± 1.96 standard errors."""
    values = np.random.default_rng(7).poisson(20, 900)
    (found,) = metrics.estimate([(values, np.ones_like(values))])
    error = 1.96 * values.std() / np.sqrt(len(values))
    assert found.low is not None
    assert found.high is not None
    assert pytest.approx(values.mean() - error, abs=0.04) == found.low
    assert pytest.approx(values.mean() + error, abs=0.04) == found.high


def test_interval_is_reproducible_and_shared() -> None:
    """The seed is fixed, and columns are resampled together."""
    generator = np.random.default_rng(3)
    column = (generator.integers(1, 30, 50), generator.integers(1, 9, 50))
    first, second = metrics.estimate([column, column])
    assert first == second == metrics.estimate([column])[0]
    (constant,) = metrics.estimate([(3 * column[0], column[0])])
    assert (3.0, 3.0, 3.0) == (constant.value, constant.low, constant.high)


def test_many_lines_are_grouped() -> None:
    """Above the limit the interval rests on groups and stays as wide as it should be."""
    values = np.random.default_rng(5).poisson(9, 20_001)
    (found,) = metrics.estimate([(values, np.ones_like(values))])
    assert pytest.approx(values.mean()) == found.value
    assert found.low is not None
    assert found.high is not None
    width = 2 * 1.96 * values.std() / np.sqrt(len(values))
    assert pytest.approx(width, rel=0.1) == found.high - found.low


def test_one_line_has_no_interval() -> None:
    """Nothing can be said about spread from one line."""
    (found,) = metrics.estimate([(np.array([4]), np.array([2]))])
    assert (2.0, None, None) == (found.value, found.low, found.high)


def test_zero_denominators() -> None:
    """A denominator of nothing but zeros is refused; a few zeros do no harm."""
    with pytest.raises(ZeroDivisionError, match="zero on every line"):
        metrics.estimate([(np.array([1, 2]), np.array([0, 0]))])
    (found,) = metrics.estimate([(np.array([4, 4]), np.array([0, 2]))])
    assert 4.0 == found.value
    assert 2.0 == found.low
