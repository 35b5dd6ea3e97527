"""The loss of a batch: the seam between the training loop and its objectives.

Owns what a row of packed ids costs. Knows nothing of steps, optimizers or processes. It runs
inside the forward of the module that accelerate wraps (`training_module`), so `model` is the plain
Hugging Face model, its parts and weights may be used directly, and with DDP, FSDP2 and autocast
it is right all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vocabshift.cpt.packing import PADDING

if TYPE_CHECKING:
    import torch

    from vocabshift.cpt.config import LoopConfig

_IGNORED = -100  # torch's cross_entropy skips targets of this value


def batch_loss(
    model: Any,
    rows: torch.Tensor,
    config: LoopConfig,
    *,
    row_seeds: torch.Tensor | None = None,  # noqa: ARG001
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of the nats of all targets in `rows`, and their number: two tensors without dimensions.

    `rows`: (n, length + 1) int64 on the model's device, as `packing` makes them; PADDING (-1) is
    neither read nor a target. A batch may hold nothing but padding: then both are 0, and the
    gradient is 0 (other processes may have more rows). `row_seeds`: (n,) int64, of each row a
    number that is the same however the batch is divided, for objectives that draw at random.
    """
    if config.objective != "causal":
        raise ValueError(f"objective {config.objective!r} is not available in this build")
    targets = rows[:, 1:].masked_fill(rows[:, 1:] == PADDING, _IGNORED)
    nats = next_token_nats(model, rows[:, :-1].clamp(min=0), targets)
    return nats, (targets != _IGNORED).sum()


def next_token_nats(model: Any, input_ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sum of cross entropies in nats; both (batch, length), targets of -100 are skipped."""
    import torch

    logits = model(input_ids=input_ids, use_cache=False).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=_IGNORED, reduction="sum"
    )
