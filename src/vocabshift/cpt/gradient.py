"""The gradient of a step: of all rows of all processes, as if they were one batch.

Owns the way from the rows of a step to gradients in the parameters: micro-batches, the exchange
between processes, the mean over all targets, clipping. Knows nothing of optimizers and schedules.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.freeze import NewRows
from vocabshift.cpt.processes import padded, shares
from vocabshift.cpt.steps import Rows

if TYPE_CHECKING:
    from accelerate import Accelerator


class Gradient:
    """Makes the gradients of one phase, step by step: `add`, then `finish`."""

    def __init__(
        self,
        wrapped: Any,
        accelerator: Accelerator,
        config: LoopConfig,
        *,
        phase: int,
        rows: Rows,
        parameters: list[torch.nn.Parameter],
        new_rows: NewRows | None,
    ) -> None:
        """`wrapped`: as `training_module.wrap` gives it; `phase`: its index, for the seeds."""
        self._wrapped, self._accelerator, self._config = wrapped, accelerator, config
        self._phase, self._rows = phase, rows
        self._parameters, self._new_rows = parameters, new_rows

    def add(self, batch: NDArray[np.int64], step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Leave the gradients of this process's part of `batch`; its nats and number of targets."""
        config, accelerator = self._config, self._accelerator
        rank, length = accelerator.process_index, config.sequence_length
        device = self._parameters[0].device
        torch.manual_seed(_seed(config.seed, self._phase, step, rank))  # dropout
        own = shares(batch, config.micro_batch_size, accelerator.num_processes)[rank]
        nats = torch.zeros((), dtype=torch.float64, device=device)
        targets = torch.zeros((), dtype=torch.int64, device=device)
        for number, piece in enumerate(own, start=1):
            # A process without rows takes part with padding. Compiled code has one shape.
            least = (config.micro_batch_size or 1) if config.compile else 1
            rows = padded(self._rows.take(piece), least, length)
            seeds = np.zeros(len(rows), dtype=np.int64)
            seeds[: len(piece)] = [_seed(config.seed, self._phase, row) for row in piece.tolist()]
            is_last = number == len(own)
            with nullcontext() if is_last else accelerator.no_sync(self._wrapped):
                part, n_targets = self._wrapped(
                    rows=torch.from_numpy(rows).to(device, torch.int64),
                    row_seeds=torch.from_numpy(seeds).to(device),
                )
                # Divided by what is known beforehand; `finish` makes it the mean. accelerate's own
                # `backward` would divide by its launcher's gradient_accumulation_steps besides.
                (part / (len(batch) * length)).backward()
            nats += part.detach()
            targets += n_targets
        return nats, targets

    def finish(self, n_rows: int, n_targets: float) -> float:
        """Make it the gradient of the mean over all targets, and clip it; its norm before that.

        `n_rows`, `n_targets`: of the step, in all processes.
        """
        # DDP and FSDP2 have taken the mean over processes.
        cells = n_rows * self._config.sequence_length
        factor = self._accelerator.num_processes * cells / max(n_targets, 1)
        if factor != 1:
            for parameter in self._parameters:
                if parameter.grad is not None:
                    parameter.grad.mul_(factor)
        if self._new_rows is not None:
            self._new_rows.keep_only()
        limit = self._config.max_gradient_norm
        norm: Any = torch.nn.utils.clip_grad_norm_(self._parameters, limit)
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


def _seed(*numbers: int) -> int:
    """A seed of 63 bits that differs for different numbers."""
    words = np.random.SeedSequence([abs(number) for number in numbers]).generate_state(2)
    return int(words[0]) << 31 ^ int(words[1])
