"""Models in folders, opened and compared by what they hold; and LoRA adapters for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def weights(folder: Path) -> dict[str, Any]:
    """The tensors of a model of one file."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def are_equal(one: Path, other: Path) -> bool:
    """Whether two models have the same tensors, bit for bit."""
    import torch

    first, second = weights(one), weights(other)
    return first.keys() == second.keys() and all(
        torch.equal(value, second[name]) for name, value in first.items()
    )


def load(folder: Path) -> Any:
    """The model, as others load it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder).eval()


def with_peft(base: Path, adapter: Path) -> Any:
    """The base with its adapter, as PEFT loads both."""
    import peft

    return peft.PeftModel.from_pretrained(load(base), adapter).eval()


def save_adapter(base: Path, out: Path, size: float, **settings: Any) -> Path:
    """An adapter of the base, random as after training; `size`: of its numbers."""
    import peft
    import torch

    model = peft.get_peft_model(load(base), peft.LoraConfig(**settings))
    torch.manual_seed(11)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.requires_grad):
            parameter.add_(torch.randn_like(parameter) * size)
    model.save_pretrained(out)
    return out
