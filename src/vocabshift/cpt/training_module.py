"""The module that accelerate wraps: a model together with its loss.

Owns how a model is prepared for one process, several (DDP) or sharding over them (FSDP2). The loss
is computed inside the wrapped forward. There accelerate exchanges gradients, gathers weights and
lowers precision as usual, while the loss may use the model's parts directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from vocabshift.cpt.likelihood_matching import boundary_mask, matching_loss
from vocabshift.cpt.loss import batch_loss
from vocabshift.cpt.packing import RowChunks

if TYPE_CHECKING:
    from accelerate import Accelerator

    from vocabshift.cpt.config import LoopConfig
    from vocabshift.cpt.objectives import SpecialIds


class TrainingModule(torch.nn.Module):
    """`forward(rows=…)` is the loss of a batch; `forward(**inputs)` is the model's own."""

    _boundary: torch.Tensor | None = None

    def __init__(self, model: Any, config: LoopConfig, special: SpecialIds) -> None:
        super().__init__()
        self.model = model
        self._config, self._special = config, special
        # The modules that accelerate shards for FSDP2; embeddings and head stay in this one.
        self._no_split_modules = getattr(model, "_no_split_modules", None)

    def forward(
        self,
        rows: Any = None,
        row_seeds: Any = None,
        chunk_numbers: Any = None,
        chunk_teacher: Any = None,
        **inputs: Any,
    ) -> Any:
        """Loss and number of targets of `rows`, or the model's own output for `inputs`.

        With chunks (likelihood matching), also (4,) float64 without a gradient: the sums of the
        matching loss and of the nats, the number of chunks and of targets in them.
        """
        if rows is None:
            return self.model(**inputs)
        if chunk_numbers is None:
            return batch_loss(self.model, rows, self._config, self._special, row_seeds=row_seeds)
        chunks = RowChunks(chunk_numbers, chunk_teacher)
        if self._boundary is None:
            self._boundary = boundary_mask(self.model, self._special)
        result = matching_loss(
            self.model, rows, chunks, self._config, self._special, boundary=self._boundary
        )
        parts = (result.matching, result.next_token, result.n_chunks, (chunk_numbers >= 0).sum())
        return result.loss, result.n_targets, torch.stack([each.double() for each in parts])

    def tie_weights(self) -> None:
        """Tie the weights; accelerate calls this after it has moved them."""
        self.model.tie_weights()


class ModelView:
    """A read-only view of a model in training, for evaluation; calls go through the wrapped module.

    With FSDP2 the model itself holds only a shard of its weights.
    """

    def __init__(self, wrapped: Any, model: Any) -> None:
        # DDP matters in training only.
        self._wrapped, self._model = getattr(wrapped, "module", wrapped), model
        self.config = model.config

    def __call__(self, **inputs: Any) -> Any:
        """The model's output for `inputs`, without gradients."""
        # Not in inference mode: the weights that FSDP2 gathers here are kept for training.
        with torch.inference_mode(False), torch.no_grad():
            return self._wrapped(**inputs)

    def get_input_embeddings(self) -> Any:
        """The input embeddings of the model."""
        return self._model.get_input_embeddings()

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        """The modules of the model, by their names in it."""
        return iter(self._model.named_modules())

    @property
    def training(self) -> bool:
        """Whether dropout is on."""
        return bool(self._model.training)

    def train(self, mode: bool = True) -> None:
        """Switch dropout on or off."""
        self._model.train(mode)

    def eval(self) -> None:
        """Switch dropout off."""
        self._model.eval()


def wrap(accelerator: Accelerator, model: Any, config: LoopConfig, special: SpecialIds) -> Any:
    """The model with its loss, ready for training.

    FSDP2 replaces the parameters of `model`; each process then holds its own shard.
    """
    module = TrainingModule(model, config, special)
    if accelerator.is_fsdp2:
        from accelerate.utils import fsdp2_prepare_model

        _sum_in_float32(accelerator.state.fsdp_plugin)
        return fsdp2_prepare_model(accelerator, module)
    return accelerator.prepare_model(module)


def _sum_in_float32(plugin: Any) -> None:
    """Make FSDP2 lower the precision of matrix products only.

    accelerate's policy for bf16 would also sum gradients over processes and micro-batches in
    bfloat16, and round the loss to three digits.
    """
    policy = plugin.mixed_precision_policy
    if policy is not None:
        plugin.mixed_precision_policy = replace(
            policy, reduce_dtype=torch.float32, output_dtype=None
        )


def forget(accelerator: Accelerator) -> None:
    """Release what `wrap` created.

    `free_memory` would do this too, but its garbage collection takes longer than a small phase.
    """
    models = accelerator._models
    models[:] = [model for model in models if not isinstance(model, TrainingModule)]


@contextmanager
def prepared_layers(model: Any, config: LoopConfig) -> Iterator[None]:
    """Enable activation checkpointing and torch.compile of the layers within the block.

    The decoder's layers are compiled one by one. They are alike, so one compilation serves all, and
    this works with DDP, FSDP2 and checkpointing.
    """
    if config.activation_checkpointing:
        _checkpointing(model, "enable")({"use_reentrant": False})
    compiled = _layers(model) if config.compile else []
    try:
        for layer in compiled:
            layer.compile()
        yield
    finally:
        if config.activation_checkpointing:
            _checkpointing(model, "disable")()
        for layer in compiled:
            layer._compiled_call_impl = None  # torch has no public way to undo it


def _checkpointing(model: Any, what: str) -> Any:
    """A method of transformers, which was renamed in 5.x."""
    new, old = f"activation_checkpointing_{what}", f"gradient_checkpointing_{what}"
    return getattr(model, new if hasattr(model, new) else old)


def _layers(model: Any) -> list[torch.nn.Module]:
    names = set(getattr(model, "_no_split_modules", None) or ())
    found = [module for module in model.modules() if type(module).__name__ in names]
    if not found:
        raise ValueError(
            f"compile: {type(model).__name__} does not say which of its modules are layers; "
            "leave compile off"
        )
    return found
