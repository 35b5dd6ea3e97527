"""Where a run stands, and what one phase of it works with.

Owns the two values alone; what is done with them is `run`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.config import Phase
from vocabshift.cpt.gradient import Gradient
from vocabshift.cpt.spikes import SpikeWatch
from vocabshift.cpt.steps import Rows

if TYPE_CHECKING:
    import torch


@dataclass
class Position:
    """Where a run stands; all that is not weights and moments."""

    phase: int = 0
    step: int = 0  # steps done in the phase
    n_bytes: int = 0  # in the phase
    n_tokens: int = 0
    run_steps: int = 0
    run_bytes: int = 0
    losses: Sequence[float] = ()  # the last ones, for SpikeWatch
    is_evaluated: bool = False  # whether what is due at this step has been done


@dataclass(frozen=True, eq=False, kw_only=True)
class Stretch:
    """A phase at work."""

    index: int
    phase: Phase
    rows: Rows
    n_steps: int
    wrapped: Any
    parameters: list[torch.nn.Parameter]
    optimizer: torch.optim.Optimizer
    gradient: Gradient
    watch: SpikeWatch
    utilization: Callable[[float], float | None]
