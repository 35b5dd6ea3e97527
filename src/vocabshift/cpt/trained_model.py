"""A trained model as files: whole weights in the dtype that is asked for.

Owns the way from a model in training (on GPUs, maybe divided over them) to safetensors and configs
in a folder. Knows nothing of tokenizers and what else lies beside a model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cpt import state
from vocabshift.cpt.written_weights import disk_errors

if TYPE_CHECKING:
    from accelerate import Accelerator

MAX_SHARD_SIZE = "5GB"


def write_model(model: Any, folder: Path, accelerator: Accelerator, *, dtype: str) -> None:
    """Write the weights as `dtype` ("float32", "bfloat16"…); all processes call it together.

    The model is of that dtype afterwards, where it is not divided.
    """
    import torch

    wanted = getattr(torch, dtype)
    if accelerator.is_fsdp2:
        parameters = dict(model.named_parameters())
        whole = state.weights(parameters, on_main=accelerator.is_main_process)
        if accelerator.is_main_process:
            _save(_undivided(model, whole, wanted), folder)
    elif accelerator.is_main_process:
        _save(model.to(wanted), folder)
    accelerator.wait_for_everyone()


def _save(model: Any, folder: Path) -> None:
    with disk_errors(folder):
        model.save_pretrained(folder, max_shard_size=MAX_SHARD_SIZE)


def _undivided(model: Any, weights: state.Tensors, dtype: Any) -> Any:
    """A model of the same kind with these weights."""
    import torch

    with torch.device("meta"):
        plain = type(model)(model.config)
    persistent = {
        name: value.to("cpu")
        for name, value in model.state_dict().items()
        if name not in weights and not hasattr(value, "full_tensor")
    }
    plain.load_state_dict({**persistent, **weights}, strict=False, assign=True)
    plain.tie_weights()
    plain.generation_config = model.generation_config
    return plain.to(dtype)
