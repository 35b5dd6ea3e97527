"""The module that accelerate wraps: a model together with its loss.

Owns how a model is made ready for one process, several (DDP) or a division over them (FSDP2).
The loss is computed inside the wrapped forward: so gradients are exchanged, weights gathered and
precision lowered as accelerate arranges it, while the loss may use the model's parts directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from vocabshift.cpt.loss import batch_loss

if TYPE_CHECKING:
    from accelerate import Accelerator

    from vocabshift.cpt.config import LoopConfig
    from vocabshift.cpt.objectives import SpecialIds


class TrainingModule(torch.nn.Module):
    """`forward(rows=…)` is the loss of a batch; `forward(**inputs)` is the model's own."""

    def __init__(self, model: Any, config: LoopConfig, special: SpecialIds) -> None:
        super().__init__()
        self.model = model
        self._config, self._special = config, special
        # What accelerate divides by, for FSDP2; embeddings and head stay with this module.
        self._no_split_modules = getattr(model, "_no_split_modules", None)

    def forward(self, rows: Any = None, row_seeds: Any = None, **inputs: Any) -> Any:
        """Sum of nats and number of targets of `rows`, or what the model makes of `inputs`."""
        if rows is None:
            return self.model(**inputs)
        return batch_loss(self.model, rows, self._config, self._special, row_seeds=row_seeds)

    def tie_weights(self) -> None:
        """For accelerate, after it has moved the weights."""
        self.model.tie_weights()


class ModelView:
    """A model in training, to be read by evaluations: calls go through the wrapped module.

    With FSDP2 the model itself holds parts of its weights only.
    """

    def __init__(self, wrapped: Any, model: Any) -> None:
        # DDP has something to do in training only.
        self._wrapped, self._model = getattr(wrapped, "module", wrapped), model
        self.config = model.config

    def __call__(self, **inputs: Any) -> Any:
        """What the model makes of `inputs`; without a gradient."""
        # Not in inference mode: the weights that FSDP2 gathers here are kept for training.
        with torch.inference_mode(False), torch.no_grad():
            return self._wrapped(**inputs)

    def get_input_embeddings(self) -> Any:
        """The model's own."""
        return self._model.get_input_embeddings()

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

    With FSDP2 the parameters of `model` are other objects afterwards, each process with its part.
    """
    module = TrainingModule(model, config, special)
    if accelerator.is_fsdp2:
        from accelerate.utils import fsdp2_prepare_model

        _sum_in_float32(accelerator.state.fsdp_plugin)
        return fsdp2_prepare_model(accelerator, module)
    return accelerator.prepare_model(module)


def _sum_in_float32(plugin: Any) -> None:
    """Let FSDP2 lower the precision of products alone.

    accelerate's policy for bf16 would add up gradients over processes and micro-batches in
    bfloat16 too, and round the loss to its three digits.
    """
    policy = plugin.mixed_precision_policy
    if policy is not None:
        plugin.mixed_precision_policy = replace(
            policy, reduce_dtype=torch.float32, output_dtype=None
        )


def forget(accelerator: Accelerator) -> None:
    """Let go of what `wrap` made.

    `free_memory` would do it too, but collects garbage, for longer than a small phase takes.
    """
    models = accelerator._models
    models[:] = [model for model in models if not isinstance(model, TrainingModule)]


@contextmanager
def prepared_layers(model: Any, config: LoopConfig) -> Iterator[None]:
    """Activation checkpointing and torch.compile of the layers, for the length of the block.

    Compiled are the decoder's layers one by one: they are alike, so that one compilation serves
    all, and it goes with DDP, FSDP2 and checkpointing.
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
            layer._compiled_call_impl = None  # torch has no public way back


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
