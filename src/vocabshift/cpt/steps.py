"""What a run tells of its steps, and what it asks of its rows.

Owns the values that pass between the loop and those who watch it. Knows nothing of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Step:
    """What one optimizer step did; the argument of `on_step`."""

    phase: int  # index
    trained: str
    step: int  # within the phase, from 1
    n_steps: int
    loss: float  # nats per token, before the step
    bits_per_byte: float  # the same loss, over the bytes of the batch
    learning_rate: float
    gradient_norm: float  # before clipping
    n_bytes: int  # bytes of text seen in this phase, this step included
    n_tokens: int  # tokens predicted in this phase, this step included
    run_bytes: int  # bytes of text seen in all phases, this step included
    seconds: float = field(default=0.0, compare=False)  # of the step alone
    tokens_per_second: float = field(default=0.0, compare=False)
    bytes_per_second: float = field(default=0.0, compare=False)
    mfu: float | None = field(default=None, compare=False)  # see `flops`; None: peak not known


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `evaluate` said, and when; the argument of `on_evaluation`."""

    phase: int  # index
    step: int  # within the phase; 0: before its first
    run_bytes: int  # bytes of text seen in all phases
    values: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What is called between steps; on every process alike."""

    on_step: Callable[[Step], None] | None = None
    evaluate: Callable[[Any], Mapping[str, float]] | None = None
    evaluate_bytes: int | None = None  # of text between two evaluations; None: first and last
    on_evaluation: Callable[[Evaluation], None] | None = None


class Rows(Protocol):
    """Packed rows of a phase."""

    @property
    def row_bytes(self) -> NDArray[np.int64]:
        """Bytes of text of each row, shape (n_rows,)."""
        ...

    @property
    def n_bytes(self) -> int:
        """Bytes of raw text in all rows."""
        ...

    def take(self, indexes: NDArray[np.int64]) -> NDArray[np.int32]:
        """These rows, shape (len(indexes), length + 1)."""
        ...
