"""The registry, ratio metrics and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from vocabshift.evaluation import metrics
from vocabshift.evaluation.counts import LineCounts


def _counts(**columns) -> LineCounts:
    """Two lines; what is not given is (1, 1)."""
    given = {name: columns.get(name, (1, 1)) for name in LineCounts.__slots__}
    return LineCounts(**{name: np.array(column) for name, column in given.items()})


COUNTS = _counts(
    n_tokens=(4, 6),
    n_single_character_tokens=(1, 2),
    n_bytes=(10, 20),
    n_characters=(5, 10),
    n_words=(2, 3),
    n_fragmented_words=(1, 3),
    n_superword_tokens=(0, 5),
    n_unknown_tokens=(1, 0),
    n_lost_characters=(3, 0),
    is_lost=(1, 0),
    tokens_in_bin=[[4.0, 0, 0, 0, 0, 0], [3.0, 3.0, 0, 0, 0, 0]],
    words_in_bin=[[2, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0]],
)

VALUES = {
    "fertility": 2.0,
    "bytes_per_token": 3.0,
    "characters_per_token": 1.5,
    "tokens_per_character": 10 / 15,
    "sequence_reduction": 20 / 30,
    "single_character_rate": 0.3,
    "normalized_sequence_length": 0.5,
    "word_fragmentation_rate": 0.8,
    "superword_rate": 0.5,
    "unk_rate": 0.1,
    "loss_rate": 0.5,
    "character_loss_rate": 0.2,
    "fertility_bin_1_10": 7 / 3,
    "fertility_bin_11_100": 1.5,
}


@pytest.mark.parametrize("name", VALUES)
def test_definitions(name: str) -> None:
    """Every metric is the ratio of sums over lines, not the mean of ratios."""
    terms = metrics.terms(name, COUNTS, _counts(n_tokens=(13, 7)))
    (found,) = metrics.estimate([terms])
    assert pytest.approx(VALUES[name]) == found.value


def test_every_ratio_has_a_definition() -> None:
    """The ratios of the registry are those that can be computed."""
    for name, metric in metrics.METRICS.items():
        if metric.family in ("ratio", "base", "frequency bin"):
            metrics.terms(name, COUNTS, COUNTS)


def test_tables_and_help_know_the_names() -> None:
    """The table's list of figures that a loss spoils, and the help, are of the registry."""
    from vocabshift.cli.evaluate import _DESCRIPTION
    from vocabshift.report.tables import COMPRESSION, FLATTERED

    assert {*metrics.METRICS, "bits_per_byte"} >= COMPRESSION | FLATTERED  # the latter of `score`
    for name in metrics.METRICS:
        assert name.removeprefix("fertility_bin") in _DESCRIPTION.split("drift")[0] or (
            name in _DESCRIPTION
        )


def test_names_are_checked() -> None:
    """An unknown name is answered with the known ones; a repeated one counts once."""
    assert ("fertility",) == metrics.check_names("fertility")
    assert ("fertility",) == metrics.check_names(["fertility", "fertility"])
    assert tuple(metrics.METRICS) == metrics.check_names("all")
    assert ("gini", "fertility") == metrics.check_names(["gini", "all"])[:2]
    with pytest.raises(ValueError, match=r"'fertilty'; known are: fertility, bytes_per_token"):
        metrics.check_names(["fertilty"])
    with pytest.raises(ValueError, match="no metric is given"):
        metrics.check_names([])


def test_a_base_is_needed() -> None:
    """A comparison without a base is refused."""
    with pytest.raises(ValueError, match="base"):
        metrics.terms("normalized_sequence_length", COUNTS)


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


def test_intervals_are_those_of_the_version_before() -> None:
    """Reports are compared across versions: another seed would move every interval."""
    column = (np.arange(1, 41) ** 2, np.arange(3, 43))
    (found,) = metrics.estimate([column])
    assert (found.low, found.high) == pytest.approx(
        (21.263641500618732, 27.50011615109469), rel=1e-9
    )


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
