"""The loss of a batch: the seam between the training loop and its objectives.

Owns what a row of packed ids costs. Knows nothing of steps, optimizers or processes. It runs
inside the forward of the module that accelerate wraps (`training_module`), so `model` is the plain
Hugging Face model, its parts and weights may be used directly, and with DDP, FSDP2 and autocast
it is right all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vocabshift.cpt.cross_entropy import IGNORED
from vocabshift.cpt.documents import document_inputs, within_documents
from vocabshift.cpt.lean_head import token_loss
from vocabshift.cpt.objectives import Masking, SpecialIds, causal, masked
from vocabshift.cpt.packing import PADDING

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
    """Sum of the nats of all targets in `rows`, and their number: two tensors without dimensions.

    `rows`: (n, length + 1) int64 on the model's device, as `packing` makes them; PADDING (-1) is
    neither read nor a target. A batch may hold nothing but padding: then both are 0, and the
    gradient is 0 (other processes may have more rows). `row_seeds`: (n,) int64, of each row a
    number that is the same however the batch is divided; for the masked objective.
    """
    if config.objective == "masked":
        return _masked_loss(model, rows, row_seeds, special.masking)
    input_ids, targets = causal(rows)
    inputs: dict[str, Any] = {"input_ids": input_ids}
    if config.document_attention:
        targets = within_documents(targets, special.separator)
        inputs = document_inputs(model, input_ids, special.separator[-1])
        targets = targets.reshape(inputs["input_ids"].shape)
    return token_loss(model, targets=targets, **inputs), (targets != IGNORED).sum()


def _masked_loss(
    model: Any, rows: torch.Tensor, row_seeds: torch.Tensor | None, masking: Masking | None
) -> tuple[torch.Tensor, torch.Tensor]:
    if masking is None or row_seeds is None:
        raise ValueError("the masked objective needs masking and row_seeds")
    input_ids, targets = masked(rows, row_seeds, masking)
    kept = (targets.flatten() != IGNORED).nonzero()[:, 0]
    seen = rows[:, :-1] != PADDING  # or a model that looks both ways would read it
    seen[:, 0] = True  # a row of padding alone: attention to nothing is not a number
    nats = token_loss(
        model,
        input_ids,
        targets,
        kept=kept,  # 15 % of the rows: the head has that much less to do
        attention_mask=seen.long(),
    )
    return nats, targets.new_tensor(len(kept))
