"""Learning-rate schedules against slow ones, point by point; the rule of spikes."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.optimize import LEAST, WINDOW, SpikeWatch, learning_rate_share


def slow_share(progress: float, warmup: float, final: float, schedule: str, decay: float) -> float:
    """The three stretches of a schedule as corner points, between which a shape is drawn."""
    corners = [(0.0, 0.0), (warmup, 1.0)]
    corners += [(1.0, final)] if schedule != "wsd" else [(1 - decay, 1.0), (1.0, final)]
    for (x0, y0), (x1, y1) in pairwise(corners):
        if x0 <= progress < x1:
            along = (progress - x0) / (x1 - x0)
            if schedule == "cosine" and y0 == 1.0:
                along = (1 - math.cos(math.pi * along)) / 2
            return y0 + (y1 - y0) * along
    return corners[-1][1]


@pytest.mark.parametrize("schedule", ["cosine", "wsd", "polynomial"])
@pytest.mark.parametrize("warmup", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("decay", [0.1, 0.5])
def test_shapes(schedule: str, warmup: float, decay: float) -> None:
    points = [number / 40 for number in range(41)]
    got = [
        learning_rate_share(p, warmup=warmup, final_rate=0.1, schedule=schedule, decay=decay)
        for p in points
    ]
    assert got == pytest.approx([slow_share(p, warmup, 0.1, schedule, decay) for p in points])


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_polynomial_is_that_of_transformers(power: float) -> None:
    """Step by step, with a warm-up and an end above 0."""
    import torch
    from transformers import get_polynomial_decay_schedule_with_warmup

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = get_polynomial_decay_schedule_with_warmup(optimizer, 5, 40, lr_end=0.1, power=power)
    for step in range(41):
        ours = learning_rate_share(
            step / 40, warmup=5 / 40, final_rate=0.1, schedule="polynomial", power=power
        )
        assert ours == pytest.approx(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()


def test_wsd_without_a_fall() -> None:
    """A stable phase that another run goes on from."""
    options = {"warmup": 0.1, "final_rate": 0.1, "schedule": "wsd", "decay": 0.0}
    assert learning_rate_share(1.0, **options) == 1.0


def test_warmup_and_decay_must_fit() -> None:
    with pytest.raises(ValueError, match="more than the whole phase"):
        LoopConfig(schedule="wsd", warmup=0.6, decay=0.5)


def test_a_spike_is_far_above_the_median() -> None:
    """Not before there are enough losses; and what was wrong is not remembered."""
    watch = SpikeWatch(2.0)
    assert watch.wrong(50.0, 1.0) is None
    for _ in range(LEAST - 2):
        assert watch.wrong(2.0, 1.0) is None
    assert watch.wrong(9.0, 1.0) is None  # one too few
    assert watch.wrong(4.0, 1.0) is None  # not above twice the median
    assert "2 times the median loss of 2.000" in str(watch.wrong(4.1, 1.0))
    assert watch.wrong(4.1, 1.0, is_whole=False) is None  # a few sequences, left for last
    assert watch.wrong(float("nan"), 1.0, is_whole=False) == "diverged"
    assert 4.1 not in watch.losses
    assert len(watch.losses) == LEAST + 1


def test_small_losses_may_vary() -> None:
    watch = SpikeWatch(2.0, [0.1] * LEAST)
    assert watch.wrong(1.0, 1.0) is None
    assert watch.wrong(1.2, 1.0) is not None


@pytest.mark.parametrize("factor", [0.0, 2.0])
@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (1.0, math.inf)])
def test_what_is_no_number_is_wrong(factor: float, loss: float, norm: float) -> None:
    assert SpikeWatch(factor).wrong(loss, norm) == "diverged"


def test_factor_of_zero_is_no_limit() -> None:
    assert SpikeWatch(0, [1.0] * WINDOW).wrong(1e6, 1.0) is None


def test_the_window_moves() -> None:
    watch = SpikeWatch(2.0, [9.0] * WINDOW)
    for _ in range(WINDOW):
        watch.wrong(2.0, 1.0)
    assert watch.wrong(9.0, 1.0) is not None
