"""The parts of a step: gradient, learning rate, spikes of the loss; and the state of a phase.

Owns how the rows of a step become gradients: micro-batches, the exchange between processes, the
mean over all targets, clipping. The gradient covers all rows of all processes, as if they were one
batch.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from vocabshift.cpt.chunks import MatchedRows
from vocabshift.cpt.config import LoopConfig, Phase
from vocabshift.cpt.phases import NewRows
from vocabshift.cpt.processes import padded, shares
from vocabshift.cpt.steps import Rows, device_peak, mfu, model_flops_per_token

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
        """`wrapped`: from `training_module.wrap`; `phase`: its index, for the seeds."""
        self._wrapped, self._accelerator, self._config = wrapped, accelerator, config
        self._phase, self._rows = phase, rows
        self._parameters, self._new_rows = parameters, new_rows

    def add(
        self, batch: NDArray[np.int64], step: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Add the gradients of this process's part of `batch`; return its loss, targets, parts.

        The parts are those of `TrainingModule.forward`, 0 where it gives none.
        """
        config, accelerator = self._config, self._accelerator
        rank, length = accelerator.process_index, config.sequence_length
        device = self._parameters[0].device
        torch.manual_seed(_seed(config.seed, self._phase, step, rank))  # dropout
        own = shares(batch, config.micro_batch_size, accelerator.num_processes)[rank]
        nats = torch.zeros((), dtype=torch.float64, device=device)
        targets = torch.zeros((), dtype=torch.int64, device=device)
        parts = torch.zeros(4, dtype=torch.float64, device=device)
        for number, piece in enumerate(own, start=1):
            # A process without rows runs on padding. Compiled code has one shape.
            least = (config.micro_batch_size or 1) if config.compile else 1
            rows = padded(self._rows.take(piece), least, length)
            seeds = np.zeros(len(rows), dtype=np.int64)
            seeds[: len(piece)] = [_seed(config.seed, self._phase, row) for row in piece.tolist()]
            is_last = number == len(own)
            with nullcontext() if is_last else accelerator.no_sync(self._wrapped):
                part, n_targets, *of_part = self._wrapped(
                    rows=torch.from_numpy(rows).to(device, torch.int64),
                    row_seeds=torch.from_numpy(seeds).to(device),
                    **self._chunks(piece, len(rows), device),
                )
                # Divided by a number known in advance; `finish` makes it the mean. accelerate's
                # `backward` would also divide by its launcher's gradient_accumulation_steps.
                (part / (len(batch) * length)).backward()
            nats += part.detach()
            targets += n_targets
            parts += sum(of_part)
        return nats, targets, parts

    def _chunks(self, piece: NDArray[np.int64], n_rows: int, device: Any) -> dict[str, Any]:
        """The chunks of these rows, and none for rows of padding after them."""
        if not isinstance(self._rows, MatchedRows):
            return {}
        numbers, teacher = self._rows.chunks(piece)
        beyond = ((0, n_rows - len(piece)), (0, 0))
        return {
            "chunk_numbers": torch.from_numpy(np.pad(numbers, beyond, constant_values=-1)).to(
                device
            ),
            "chunk_teacher": torch.from_numpy(np.pad(teacher, beyond, constant_values=np.nan)).to(
                device
            ),
        }

    def finish(self, n_rows: int, n_targets: float) -> float:
        """Rescale to the mean over all targets and clip; return the norm before clipping.

        `n_rows`, `n_targets`: of the step, over all processes.
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


# Learning-rate schedules over the progress of a phase.


def learning_rate_share(
    progress: float,
    *,
    warmup: float,
    final_rate: float,
    schedule: str = "cosine",
    decay: float = 0.1,
    power: float = 1.0,
) -> float:
    """Share of the peak learning rate at `progress`, both 0-1.

    A linear warm-up, then a cosine to a final share (Llama and most others: 10 %), a plateau and a
    linear fall (WSD, arXiv:2404.06395 sec. 4), or a power of what is left (BERT: 1, to 0; as
    transformers' `get_polynomial_decay_schedule_with_warmup`). Progress is the share of the phase's
    bytes of text, so that the rate does not depend on the tokenizer.

    `warmup`: share of the progress over which the rate rises linearly from 0; `final_rate`: where
    it ends; `decay`: for "wsd", the share of the progress over which it falls linearly; `power`: of
    "polynomial".
    """
    if progress < warmup:
        return progress / warmup
    if schedule == "wsd":
        left = 1 - progress
        return 1.0 if left >= decay else final_rate + (1 - final_rate) * max(left, 0.0) / decay
    if warmup == 1.0:
        return 1.0
    after = (progress - warmup) / (1 - warmup)
    if schedule == "polynomial":
        return final_rate + (1 - final_rate) * math.pow(max(1 - after, 0.0), power)
    return final_rate + (1 - final_rate) * (1 + math.cos(math.pi * after)) / 2


# Failed steps: a loss that is not finite, or far above the recent ones.

WINDOW = 100
LEAST = 20
_NATS_ABOVE = 1.0


class SpikeWatch:
    """Watches the recent losses of a phase for spikes.

    A step is refused if its loss or gradient norm is not finite. It is also refused if its loss
    exceeds the median of the last WINDOW losses by `factor` and by one nat; this applies to full
    batches, once there are LEAST losses. The margin of one nat keeps small losses, whose relative
    variation is large, from stopping a healthy run.
    """

    def __init__(self, factor: float, losses: Iterable[float] = ()) -> None:
        """`factor` of 0: only non-finite values are refused."""
        self._factor = factor
        self.losses = deque(losses, maxlen=WINDOW)

    def wrong(self, loss: float, gradient_norm: float, *, is_whole: bool = True) -> str | None:
        """What is wrong with a step; None if nothing is, and the loss is then recorded.

        `is_whole` is False for a phase's last step, which may hold a single hard sequence.
        """
        if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
            return "diverged"
        if not is_whole:
            return None
        if self._factor and len(self.losses) >= LEAST:
            median = statistics.median(self.losses)
            if loss > self._factor * median and loss > median + _NATS_ABOVE:
                return f"spiked above {self._factor:g} times the median loss of {median:.3f}"
        self.losses.append(loss)
        return None


def utilization_of(
    model: Any, config: LoopConfig, device: torch.device, n_devices: int
) -> Callable[[float], float | None]:
    """Function from tokens per second, over all processes, to model FLOPs utilization."""
    peak = device_peak(device)
    if peak is None:
        return lambda _: None
    per_token = model_flops_per_token(model, config.sequence_length)
    return partial(mfu, flops_per_token=per_token, peak=peak, n_devices=n_devices)


@dataclass
class Position:
    """The position of a run: its state except weights and moments."""

    phase: int = 0
    step: int = 0  # steps done in the phase
    n_bytes: int = 0  # in the phase
    n_tokens: int = 0
    run_steps: int = 0
    run_bytes: int = 0
    losses: Sequence[float] = ()  # the last ones, for SpikeWatch
    is_evaluated: bool = False  # whether what is due at this step has been done


@dataclass(frozen=True, eq=False, kw_only=True)
class PhaseState:
    """The state of one phase of a run."""

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
