"""Quantized models: what says that a model is one, and which of its tables are quantized.

Exporters quantize the matrices inside the layers. Most leave embeddings and head in bfloat16 or
float16, and rows of such a table can be moved whatever the other tensors hold. A quantized table
has another dtype, or tensors of scales and codes in its module. Knows no format's packing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

FILES = (
    "quantize_config.json",  # GPTQModel, AutoGPTQ
    "quant_config.json",  # AutoAWQ
    "quantization_config.json",  # AutoRound
    "hf_quant_config.json",  # ModelOpt
    "recipe.yaml",  # LLM Compressor
)
"""Files of exporters beside config.json, which other programs read. None of them holds an id."""

_KEYS = ("quantization_config", "compression_config")  # the second: of older compressed-tensors


def quantization_method(config: Any) -> str | None:
    """How the config of a model says that it is quantized, such as "gptq"; None if it does not.

    The text part of a multimodal wrapper is asked too.
    """
    for part in (config, config.get_text_config()):
        for key in _KEYS:
            said = getattr(part, key, None)
            if said:
                get = said.get if isinstance(said, dict) else vars(said).get
                method = get("quant_method") or get("format") or "method not named"
                return str(getattr(method, "value", method))
    return None


def quantized_parts(names: Collection[str], tensor: str, *, is_exact: bool) -> list[str]:
    """Those of `names` that belong to a quantized form of `tensor`: its codes, scales, zeros.

    "lm_head.weight" has "lm_head.qweight", "lm_head.weight_scale" or "lm_head.SCB" beside it.
    `is_exact`: the module has the same path in `names`; otherwise the longest common ending of the
    paths decides, as checkpoints are saved with and without the prefix of a wrapper.
    """
    module, _, own = tensor.rpartition(".")
    for ending in [module] if is_exact else _endings(module):
        found = []
        for name in names:
            before, dot, rest = f".{name}".rpartition(f".{ending}.")
            if dot and not (is_exact and before) and _is_part(rest, own):
                found.append(name)
        if found:  # what holds the codes has the tensor's name in its own: it comes first
            return sorted(found, key=lambda name: (own not in name.rpartition(ending)[2], name))
    return []


def quantized_table(name: str, dtype: Any, source: Any, method: str | None) -> ValueError:
    """The error for a table of `source` that cannot be moved because of this tensor."""
    how = f" ({method})" if method else ""
    return ValueError(
        f"{name} is {dtype}: this table of {source} is quantized{how}, and its rows can be neither "
        "moved nor compared. Take the unquantized checkpoint: transfer that one, and quantize the "
        "result. Where embeddings and head are bfloat16, float16 or float32, a quantized "
        "checkpoint is transferred as it is"
    )


def loading_advice(method: str | None) -> str:
    """What to say after the reason why a model so quantized is not loaded; "" for no method."""
    if method is None:
        return ""
    return (
        f". It is quantized ({method}), and transformers loads such a model only with the packages "
        "of that method, often only on a GPU. Where they cannot be had, give the unquantized "
        "checkpoint"
    )


def _endings(path: str) -> Iterator[str]:
    parts = path.split(".")
    for start in range(len(parts)):
        yield ".".join(parts[start:])


def _is_part(rest: str, own: str) -> bool:
    """Whether a tensor of this name in a module belongs to a quantized form of its tensor `own`."""
    if rest.startswith((f"{own}_", f"{own}.", f"{own}:")):
        return True
    # Embeddings and linear layers have nothing but these two themselves.
    return own == "weight" and "." not in rest and rest not in ("weight", "bias")
