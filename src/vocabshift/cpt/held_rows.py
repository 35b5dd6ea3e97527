"""Training nothing but the rows of new tokens, in any loop: other weights stay, bit for bit.

Two means, because one is not enough. Gradients of all other rows are zeroed by hooks as they
arrive, before they are added up over micro-batches, exchanged between processes or clipped: the
norm that clipping sees is that of the new rows. But an optimizer moves rows without a gradient too:
weight decay shrinks the whole table, momentum from before goes on, and Adafactor and Muon scale a
table as one. So after each step the other rows are put back from a copy. (A parametrization, with
the new rows as a parameter of their own, would do without the copy. It renames weights in
checkpoints, unties tied tables and copies the table in every forward pass.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

import torch

from vocabshift.cpt.config import NEW_ROWS
from vocabshift.cpt.phases import NewRows, phase_parameters

_SHARDED = (
    "the tables of the model are sharded over processes (FSDP2), or were replaced since "
    "hold_old_rows, and rows are held in whole ones alone; use `vocabshift cpt` with "
    'trained = "new-rows"'
)


class HeldRows:
    """What `hold_old_rows` returns; in a `with` block it ends with the block."""

    def __init__(self, model: Any, new_ids: Iterable[int]) -> None:
        """As for `hold_old_rows`."""
        ids = sorted({int(new_id) for new_id in new_ids})
        parameters = phase_parameters(model, NEW_ROWS)
        NewRows(parameters, ids)  # checks the ids
        if any(hasattr(parameter, "device_mesh") for parameter in parameters):
            raise ValueError(_SHARDED)
        self._model = model
        self._before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
        for parameter, _ in self._before:
            parameter.requires_grad_(False)
            parameter.grad = None
        self._held: list[tuple[torch.nn.Parameter, torch.Tensor, torch.Tensor]] = []
        self._hooks: list[Any] = []
        for parameter in parameters:
            is_old = torch.ones(parameter.shape[0], dtype=torch.bool)
            is_old[ids] = False
            old_ids = is_old.nonzero()[:, 0].to(parameter.device)
            parameter.requires_grad_(True)
            tensor: Any = parameter
            self._hooks.append(tensor.register_hook(_masking(old_ids)))
            self._held.append((parameter, old_ids, parameter.detach()[old_ids]))

    def restore(self) -> None:
        """Put all other rows back; call it after each step of the optimizer.

        ValueError if the model has other tables by now: those would not be held.
        """
        present = {id(parameter) for parameter in self._model.parameters()}
        if not all(id(parameter) in present for parameter, *_ in self._held):
            raise ValueError(_SHARDED)
        with torch.no_grad():
            for number, (parameter, *held) in enumerate(self._held):
                # A Trainer moves the model after it was given to us.
                old_ids, rows = (each.to(parameter.device) for each in held)
                self._held[number] = parameter, old_ids, rows
                parameter.index_copy_(0, old_ids, rows.to(parameter.dtype))

    def callback(self) -> Any:
        """A `TrainerCallback` of transformers that calls `restore` after each optimizer step.

        For `Trainer(callbacks=[…])`, and for trainers derived from it, such as TRL's.
        """
        from transformers import TrainerCallback

        held = self

        class RestoreOldRows(TrainerCallback):
            def on_optimizer_step(self, *_: Any, **__: Any) -> None:
                held.restore()

        return RestoreOldRows()

    def release(self) -> None:
        """End it: all weights may be trained again as before. What was learnt stays."""
        for hook in self._hooks:
            hook.remove()
        for parameter, required in self._before:
            parameter.requires_grad_(required)
            parameter.grad = None
        self._hooks, self._held, self._before = [], [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def hold_old_rows(model: torch.nn.Module, new_ids: Iterable[int]) -> HeldRows:
    """Freeze a model but for the rows of new tokens in embeddings, head and the head's bias.

    model: a causal language model of transformers, before it is given to an optimizer, a Trainer
        or DDP: these look at what requires a gradient.
    new_ids: ids of the tokens whose rows are trained.

    In PyTorch, call `restore()` of the result after each `optimizer.step()`; in a Trainer pass
    `callbacks=[held.callback()]`. All other weights then stay bit for bit, whatever the optimizer:
    weight decay, momentum, clipping and accumulated gradients included. It takes one copy of the
    tables' other rows. ValueError without new ids, for ids that the model does not have, and for
    tables that FSDP2 has sharded, or shards later (in `restore`).
    """
    return HeldRows(model, new_ids)


def _masking(old_ids: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    def without_old_rows(gradient: torch.Tensor) -> torch.Tensor:
        # Filled, not multiplied by 0: an overflow in an old row must not reach the norm as NaN.
        return gradient.index_fill(0, old_ids.to(gradient.device), 0.0)

    return without_old_rows
