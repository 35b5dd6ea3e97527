"""Rényi entropy against the formula, and its interval against the bootstrap of itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reference import metrics as slow
from vocabshift.evaluation.lines.counts import Counts, LineCounts
from vocabshift.evaluation.metrics.distribution import check_alpha, renyi, renyi_entropy
from vocabshift.evaluation.metrics.metric import estimate


def _counts(lines: list[list[int]]) -> Counts:
    n_tokens = [len(line) for line in lines]
    offsets = np.concatenate([[0], np.cumsum(n_tokens)])
    ids = np.array([token for line in lines for token in line], dtype=np.int32)
    columns = {name: np.zeros(len(lines), dtype=np.int64) for name in LineCounts.__slots__}
    return Counts(LineCounts(**columns | {"n_tokens": np.array(n_tokens)}), ids, offsets)


@pytest.mark.parametrize("alpha", [0.5, 1, 2, 2.5, 3])
@pytest.mark.parametrize(
    "frequencies", [[1], [5, 5, 5, 5], [8, 4, 2, 1, 1], [1000, 1, 1, 1], [3, 0, 1]]
)
def test_entropy_is_the_formula(alpha: float, frequencies: list[int]) -> None:
    """The entropy is that of the reference formula on hand-made distributions."""
    tokens = [token for token, count in enumerate(frequencies) for _ in range(count)]
    assert pytest.approx(slow.renyi_entropy(tokens, alpha), abs=1e-12) == renyi_entropy(
        frequencies, alpha
    )


def test_entropy_by_hand() -> None:
    """Uniform: log2 n for every order. A half and two quarters, order 2: -log2(3/8)."""
    assert pytest.approx(2.0) == renyi_entropy([7, 7, 7, 7], 2.5)
    assert pytest.approx(-math.log2(3 / 8)) == renyi_entropy([2, 1, 1], 2)
    assert pytest.approx(1.5) == renyi_entropy([2, 1, 1], 1)
    assert pytest.approx(math.log2(2**-2.5 + 2 * 4**-2.5) / -1.5) == renyi_entropy([2, 1, 1])


@pytest.mark.parametrize("alpha", [5000, 1e300])
def test_large_orders(alpha: float) -> None:
    """Towards infinity the entropy is that of the commonest token; nothing under- or overflows."""
    assert pytest.approx(1.0, abs=1e-3) == renyi_entropy([2, 1, 1], alpha)
    found = renyi(_counts([[0, 0], [1], [2]]), 3, alpha)
    (ratio,) = estimate([found.terms])
    value = found.estimate(ratio)
    assert value.low is not None
    assert value.high is not None
    assert 0 <= value.low <= value.value <= value.high <= math.log2(3)


@pytest.mark.parametrize("alpha", [1, 2, 2.5])
def test_interval_is_that_of_the_entropy_itself(alpha: float) -> None:
    """The interval from one ratio is that of the entropy computed anew on every resample."""
    generator = np.random.default_rng(4)
    p = 1 / np.arange(1, 60)
    lines = [
        generator.choice(59, generator.integers(5, 40), p=p / p.sum()).tolist() for _ in range(400)
    ]
    found = renyi(_counts(lines), 59, alpha)
    (ratio,) = estimate([found.terms])
    value = found.estimate(ratio)
    assert (
        pytest.approx(slow.renyi_entropy([token for line in lines for token in line], alpha))
        == value.value
    )
    low, high = slow.renyi_bootstrap(lines, alpha, 600, seed=1)
    assert value.low is not None
    assert value.high is not None
    assert value.low < value.value < value.high
    assert pytest.approx(high - low, rel=0.12) == value.high - value.low
    assert pytest.approx(low, abs=0.25 * (high - low)) == value.low
    half = found.estimate(ratio, scale=2.0)
    assert (value.value / 2, value.low / 2, value.high / 2) == (half.value, half.low, half.high)


def test_intervals_cover() -> None:
    """Of many texts drawn from a known distribution, about 95 % have its entropy inside."""
    generator = np.random.default_rng(9)
    p = 1 / np.arange(1, 30)
    p /= p.sum()
    truth = math.log2((p**2.5).sum()) / -1.5
    inside = 0
    for _ in range(200):
        lines = [generator.choice(29, 20, p=p).tolist() for _ in range(150)]
        found = renyi(_counts(lines), 29)
        value = found.estimate(estimate([found.terms])[0])
        inside += value.low <= truth <= value.high
    assert 180 <= inside <= 199


def test_one_line_has_no_interval() -> None:
    """Nothing can be said about spread from one line."""
    found = renyi(_counts([[0, 1, 1]]), 2)
    value = found.estimate(estimate([found.terms])[0])
    assert (None, None) == (value.low, value.high)


@pytest.mark.parametrize("alpha", [0, -1, float("nan"), float("inf")])
def test_orders_are_checked(alpha: float) -> None:
    """The order is a number above 0."""
    with pytest.raises(ValueError, match="above 0"):
        check_alpha(alpha)
