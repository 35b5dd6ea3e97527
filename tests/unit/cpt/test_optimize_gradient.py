"""What a step leaves in the parameters: the mean over all targets, no longer than the limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vocabshift.cpt.config import LoopConfig  # noqa: E402
from vocabshift.cpt.optimize import Gradient  # noqa: E402


def finished(limit: float, *, n_rows: int = 2, n_targets: float = 64, processes: int = 1) -> Any:
    """The gradient [3, 4] after `finish`, and the norm that it reports."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    gradient = Gradient(
        None,
        SimpleNamespace(num_processes=processes),  # type: ignore[arg-type]
        LoopConfig(sequence_length=32, max_gradient_norm=limit),
        phase=0,
        rows=None,  # type: ignore[arg-type]
        parameters=[parameter],
        new_rows=None,
    )
    norm = gradient.finish(n_rows, n_targets)
    return parameter.grad.tolist(), norm


def test_it_is_clipped() -> None:
    """Adam hides a missing limit in ordinary steps; one bad batch then ruins its moments."""
    grad, norm = finished(0.5)
    assert norm == pytest.approx(5.0)  # before it was clipped
    assert grad == pytest.approx([0.3, 0.4], rel=1e-4)
    assert finished(6.0)[0] == pytest.approx([3.0, 4.0])


def test_it_is_the_mean_over_targets() -> None:
    """Padding has no target: it must not make a step smaller; nor must further processes."""
    assert finished(100.0, n_targets=32)[0] == pytest.approx([6.0, 8.0])
    assert finished(100.0, processes=3)[0] == pytest.approx([9.0, 12.0])
    assert finished(0.5, n_targets=32)[1] == pytest.approx(10.0)


def test_dropout_has_a_seed_of_its_own_in_every_step() -> None:
    """With one seed for all of them the same units would be dropped from first to last.

    A step that is done again, after a checkpoint, drops what it dropped.
    """

    def drawn(step: int, *, phase: int = 0, rank: int = 0, seed: int = 0) -> float:
        parameter = torch.nn.Parameter(torch.ones(()))
        seen: list[float] = []

        def wrapped(**_: Any) -> Any:
            seen.append(float(torch.rand(())))
            return parameter * 1.0, torch.tensor(4)

        with torch.random.fork_rng(devices=[]):
            Gradient(
                wrapped,
                SimpleNamespace(process_index=rank, num_processes=2),  # type: ignore[arg-type]
                LoopConfig(sequence_length=4, seed=seed),
                phase=phase,
                rows=SimpleNamespace(take=lambda at: np.ones((len(at), 5), np.int32)),  # type: ignore[arg-type]
                parameters=[parameter],
                new_rows=None,
            ).add(np.arange(2), step)
        return seen[0]

    draws = [drawn(1), drawn(2), drawn(1, phase=1), drawn(1, rank=1), drawn(1, seed=7)]
    assert 5 == len(set(draws))
    assert draws[0] == drawn(1)
