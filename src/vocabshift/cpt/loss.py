"""Computes the loss of a packed batch.

It runs inside the forward of the module that accelerate wraps (`training_module`). There `model` is
the plain Hugging Face model, and its parts and weights may be used directly: autocast, DDP, FSDP2
and hooks have already done their work. `models.token_loss` keeps the logits from being
materialised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vocabshift.cpt.objectives import (
    Masking,
    SpecialIds,
    causal_inputs,
    masked,
)
from vocabshift.cpt.packing import PADDING
from vocabshift.models.cross_entropy import IGNORED
from vocabshift.models.token_loss import token_loss

if TYPE_CHECKING:
    import torch

    from vocabshift.cpt.config import LoopConfig


def batch_loss(
    model: Any,
    rows: torch.Tensor,
    config: LoopConfig,
    special: SpecialIds,
    *,
    row_seeds: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of the nats of all targets in `rows`, and their number: two scalar tensors.

    `rows`: (n, length + 1) int64 on the model's device, as `packing` makes them; PADDING (-1) is
    neither read nor a target. A batch may be all padding, if other processes have more rows: both
    results and the gradient are then 0. `row_seeds`: (n,) int64, one number per row that does not
    depend on how the batch is divided; for the masked objective.
    """
    if config.objective == "masked":
        return _masked_loss(model, rows, row_seeds, special.masking)
    targets, inputs = causal_inputs(model, rows, config, special)
    return token_loss(model, targets=targets, **inputs), (targets != IGNORED).sum()


def _masked_loss(
    model: Any, rows: torch.Tensor, row_seeds: torch.Tensor | None, masking: Masking | None
) -> tuple[torch.Tensor, torch.Tensor]:
    if masking is None or row_seeds is None:
        raise ValueError("the masked objective needs masking and row_seeds")
    input_ids, targets = masked(rows, row_seeds, masking)
    kept = (targets.flatten() != IGNORED).nonzero()[:, 0]
    seen = rows[:, :-1] != PADDING  # or a bidirectional model would read it
    seen[:, 0] = True  # a row of padding only: attention to nothing is NaN
    nats = token_loss(
        model,
        input_ids,
        targets,
        kept=kept,  # the head is applied to 15 % of the positions only
        attention_mask=seen.long(),
    )
    return nats, targets.new_tensor(len(kept))
