"""Divides the rows of a step over processes, and sums values over them.

Owns which rows a process reads, the sums over all processes, and the lifetime of the `Accelerator`
if the caller has none. The gradient of a step equals that of one big batch: the sum of nats over
all targets, divided by the number of targets.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.packing import PADDING

if TYPE_CHECKING:
    from accelerate import Accelerator

_PATIENCE = timedelta(hours=2)

Indexes = NDArray[np.int64]


def shares(batch: Indexes, micro_batch_size: int | None, n_processes: int) -> list[list[Indexes]]:
    """Row indexes of the micro-batches of each process: equally many, the last may be empty.

    `micro_batch_size`: rows per forward pass of a process; None: all of its rows.
    """
    size = micro_batch_size or -(-len(batch) // n_processes)
    pieces = [batch[at : at + size] for at in range(0, len(batch), size)]
    rounds = -(-len(pieces) // n_processes)
    pieces += [batch[:0]] * (rounds * n_processes - len(pieces))
    return [pieces[rank::n_processes] for rank in range(n_processes)]


def padded(rows: NDArray[np.int32], n_rows: int, length: int) -> NDArray[np.int32]:
    """The rows, filled up to `n_rows` with rows of padding."""
    if len(rows) >= n_rows:
        return rows
    beyond = np.full((n_rows - len(rows), length + 1), PADDING, dtype=np.int32)
    return np.concatenate([rows, beyond]) if len(rows) else beyond


def sums(accelerator: Accelerator, device: Any, *values: Any) -> list[float]:
    """Each value added up over all processes, in double precision."""
    import torch

    parts = [torch.as_tensor(value, dtype=torch.float64, device=device) for value in values]
    total: Any = accelerator.reduce(torch.stack(parts), reduction="sum")
    return [float(value) for value in total.tolist()]


@contextmanager
def accelerator_for(model: Any, mixed_precision: str | None) -> Iterator[Accelerator]:
    """An `Accelerator` within the block, for the device that the model is on."""
    on_cpu = next(model.parameters()).device.type == "cpu"
    with new_accelerator(
        cpu=on_cpu, mixed_precision=mixed_precision, device_placement=False
    ) as accelerator:
        yield accelerator


@contextmanager
def new_accelerator(**options: Any) -> Iterator[Accelerator]:
    """`Accelerator(**options)` within the block.

    accelerate keeps device and precision for the life of the process. They are reset afterwards,
    unless they were set before, so that the next run may choose its own.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import InitProcessGroupKwargs

    # The first process may pack text or write checkpoints while the others wait.
    patience = InitProcessGroupKwargs(timeout=_PATIENCE)
    is_first = not (AcceleratorState._shared_state or PartialState._shared_state)
    try:
        yield Accelerator(kwargs_handlers=[patience], **options)
    finally:
        if is_first and not PartialState().use_distributed:
            AcceleratorState._reset_state(reset_partial_state=True)


def check_launch(accelerator: Accelerator) -> None:
    """Raise ValueError for options of `accelerate launch` that this loop does not support.

    float16 needs scaled losses, and gradients that are unscaled before clipping. DeepSpeed,
    Megatron and FSDP1 have their own optimizers or parameters. A model whose weights are on one
    process only cannot be probed.
    """
    from vocabshift.cpt.config import PRECISIONS

    if accelerator.mixed_precision not in PRECISIONS:
        raise ValueError(
            f"accelerate was launched with mixed_precision {accelerator.mixed_precision}, and "
            f"training is done in bf16 or no; set mixed_precision here or in accelerate's file"
        )
    kind = str(accelerator.distributed_type.value)
    if not (kind == "NO" or kind.startswith("MULTI_") or accelerator.is_fsdp2):
        kind = "FSDP, version 1" if kind == "FSDP" else kind
        raise ValueError(
            f"accelerate was launched with {kind}, and the training loop knows one process, DDP "
            "and FSDP2 (fsdp_version: 2); see recipes/accelerate"
        )
    plugin: Any = accelerator.state.fsdp_plugin if accelerator.is_fsdp2 else None
    for name, key in (
        ("cpu_ram_efficient_loading", "fsdp_cpu_ram_efficient_loading"),
        ("cpu_offload", "fsdp_offload_params"),
    ):
        # Switched off it is None, False, or (as accelerate has it) a plain OffloadPolicy.
        value = getattr(plugin, name, None)
        if value is True or type(value).__name__ == "CPUOffloadPolicy":
            raise ValueError(
                f"accelerate was launched with {key}, which the training loop cannot do; set it "
                "to false, as in recipes/accelerate"
            )


def require_same(accelerator: Accelerator, number: int, what: str) -> None:
    """Raise ValueError if `number` differs between processes."""
    import torch

    if accelerator.num_processes == 1:
        return
    own = torch.tensor([number], dtype=torch.int64, device=accelerator.device)
    found: Any = accelerator.gather(own)
    if len(set(found.tolist())) > 1:
        raise ValueError(
            f"the processes differ in {what} ({', '.join(map(str, found.tolist()))}): all of them "
            "must see the same disk"
        )


def load_accelerate() -> None:
    """Raise ImportError with install instructions if accelerate or torch is missing."""
    try:
        import accelerate  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "training needs torch and accelerate; install them with: pip install 'vocabshift[hf]'"
        ) from error


# Ctrl-C and SIGTERM during training: the current step is finished, then the state is saved.

_CAUGHT = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """`asked` becomes true at the first signal. Only the main thread of a process gets signals.

    A second Ctrl-C acts as usual, so that nobody has to wait for a slow step. A second SIGTERM does
    nothing: Slurm signals every process of a job, and the launcher forwards its own signal, so that
    each process gets two at once.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in _CAUGHT:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put_back(*_CAUGHT)

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.asked = True
        self._put_back(signal.SIGINT)

    def _put_back(self, *numbers: int) -> None:
        for number in numbers:
            if number in self._before:
                signal.signal(number, self._before.pop(number))
