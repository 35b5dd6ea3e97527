"""The config.json of a model, from the metadata of a GGUF file.

Owns which architectures it knows, the names of their keys (gguf/constants.py of
llama.cpp) and what is not written but built into its graphs of models. Reads no weights but the
factors into which llama.cpp's converter turns Llama-3's rope scaling.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from vocabshift.tokenizer.formats.gguf_header import Header, TensorInfo

SUPPORTED = ("llama", "mistral3", "qwen2", "qwen3", "gemma", "gemma2", "gemma3")
"""Values of `general.architecture` that can be converted; Mistral's older models say "llama"."""

GEMMA = ("gemma", "gemma2", "gemma3")
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
}
ROPE_FACTORS = "rope_freqs.weight"
LARGEST_GEMMA = {"gemma2": 46, "gemma3": 62}
"""Layers of the 27B models, whose attention is scaled by another size (in llama.cpp)."""


class Metadata:
    """The keys of one architecture, read with checks; ValueError names a bad key."""

    def __init__(self, values: Mapping[str, Any], architecture: str) -> None:
        self.values = values
        self.architecture = architecture

    def get(self, key: str) -> Any:
        """The value of `ARCHITECTURE.key`, or None."""
        return self.values.get(f"{self.architecture}.{key}")

    def count(self, key: str, default: int | None = None) -> int:
        """A positive whole number."""
        value = self.get(key)
        if value is None and default is not None:
            return default
        if type(value) is not int or value < 1:
            raise self._wrong(key, value, "a positive whole number")
        return value

    def real(self, key: str, default: float | None = None) -> float:
        """A positive number."""
        value = self.get(key)
        if value is None and default is not None:
            return default
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise self._wrong(key, value, "a positive number")
        return float(f"{value:.7g}")  # as it was before it became 32 bits

    def _wrong(self, key: str, value: Any, wanted: str) -> ValueError:
        name = f"{self.architecture}.{key}"
        if value is None:
            return ValueError(f"the GGUF file lacks the key {name}, {wanted}")
        shown = f"a list of {len(value)}" if isinstance(value, list) else repr(value)[:40]
        return ValueError(f"{name} of the GGUF file is {shown}, not {wanted}")


def build_config(metadata: Metadata, header: Header, data: bytes) -> dict[str, Any]:
    """The config.json of the model, without the ids of tokens and the dtype.

    `data`: the file, of which only Llama-3's rope factors are read. ValueError for keys that are
    missing or contradict the tensors.
    """
    architecture = metadata.architecture
    tensors = {info.name: info for info in header.tensors}
    embedding = tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ValueError("the GGUF file has no matrix token_embd.weight; it holds no whole model")
    layers = metadata.count("block_count")
    if layers > len(tensors):
        raise ValueError(
            f"{architecture}.block_count of the GGUF file is {layers}, and it has only "
            f"{len(tensors)} tensors"
        )
    hidden, heads = metadata.count("embedding_length"), metadata.count("attention.head_count")
    head_dim = metadata.count("attention.key_length", _head_dim(metadata, hidden, heads))
    if head_dim % 2:
        raise ValueError(
            f"heads of the GGUF file have {head_dim} dimensions, an odd number, and rotary "
            "embeddings pair them; the file is damaged"
        )
    for key in ("attention.value_length", "rope.dimension_count"):
        if metadata.count(key, head_dim) != head_dim:
            raise ValueError(
                f"{architecture}.{key} of the GGUF file is {metadata.get(key)}, and its heads have "
                f"{head_dim} dimensions; transformers' {architecture} has no such model"
            )
    model_type = _model_type(metadata, tensors)
    config: dict[str, Any] = {
        "architectures": [_CLASSES[model_type]],
        "model_type": model_type,
        "vocab_size": embedding.shape[0],
        "hidden_size": hidden,
        "intermediate_size": metadata.count("feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.count("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": metadata.count("context_length"),
        "rms_norm_eps": metadata.real("attention.layer_norm_rms_epsilon"),
        "hidden_act": "silu",
        "rope_parameters": _rope(metadata, tensors, data, head_dim),
        "tie_word_embeddings": "output.weight" not in tensors,
        "use_cache": True,
        # Subtle: to models of type mistral, transformers may give another pre-tokenizer where the
        # version is not at least 5, whose form of config.json this is.
        "transformers_version": "5.0.0",
    }
    if model_type in ("mistral", "ministral3"):
        window = metadata.get("attention.sliding_window")
        config["sliding_window"] = metadata.count("attention.sliding_window") if window else None
    if architecture in ("llama", "qwen3") and model_type != "mistral":
        config["attention_bias"] = "blk.0.attn_q.bias" in tensors
    if model_type == "llama":
        config["mlp_bias"] = "blk.0.ffn_gate.bias" in tensors
    if architecture in GEMMA:
        config.update(_gemma(metadata, layers, head_dim, hidden // heads))
    if architecture == "gemma3":
        config.update(_two_ropes(metadata, config["rope_parameters"]))
    return config


def _head_dim(metadata: Metadata, hidden: int, heads: int) -> int:
    if metadata.architecture in ("llama", "mistral3"):
        return metadata.count("rope.dimension_count", max(hidden // heads, 1))
    return max(hidden // heads, 1)


def _model_type(metadata: Metadata, tensors: Mapping[str, TensorInfo]) -> str:
    """The type in transformers. A Mistral without a window computes what a Llama does."""
    architecture = metadata.architecture
    if architecture == "gemma3":
        return "gemma3_text"
    if architecture == "mistral3":
        return "ministral3" if metadata.get("attention.temperature_scale") else "mistral"
    if architecture != "llama" or "blk.0.attn_q.bias" in tensors:
        return architecture
    names = (metadata.values.get(f"general.{key}") for key in ("name", "basename"))
    is_mistral = any(isinstance(name, str) and "mistral" in name.lower() for name in names)
    has_window = bool(metadata.get("attention.sliding_window"))
    return "mistral" if is_mistral or has_window else "llama"


def _gemma(metadata: Metadata, layers: int, head_dim: int, other_dim: int) -> dict[str, Any]:
    config: dict[str, Any] = {
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh",
    }
    architecture = metadata.architecture
    if architecture == "gemma":
        return config
    is_largest = layers == LARGEST_GEMMA[architecture]
    config["query_pre_attn_scalar"] = other_dim if is_largest else head_dim
    if architecture == "gemma2":
        config["attn_logit_softcapping"] = metadata.real("attn_logit_softcapping", 50.0)
        config["final_logit_softcapping"] = metadata.real("final_logit_softcapping", 30.0)
        window, every = metadata.count("attention.sliding_window", 4096), 2
    else:
        cap = "final_logit_softcapping"
        config[cap] = metadata.real(cap) if metadata.get(cap) else None
        config["attn_logit_softcapping"] = None
        has_window = bool(metadata.get("attention.sliding_window"))
        window = metadata.count("attention.sliding_window") if has_window else 4096
        every = metadata.count("attention.sliding_window_pattern", 6) if has_window else 1
    types = ("sliding_attention", "full_attention")
    config["layer_types"] = [types[(layer + 1) % every == 0] for layer in range(layers)]
    return config | {"sliding_window": window}


def _two_ropes(metadata: Metadata, rope: dict[str, Any]) -> dict[str, Any]:
    """Gemma 3: layers with a window have another base, and no scaling."""
    local = {"rope_type": "default", "rope_theta": metadata.real("rope.freq_base_swa", 10_000.0)}
    config: dict[str, Any] = {
        "rope_parameters": {"full_attention": rope, "sliding_attention": local}
    }
    if rope["rope_type"] != "default":  # where transformers 4 looks for it
        config["rope_scaling"] = {k: v for k, v in rope.items() if k != "rope_theta"}
    return config


def _rope(
    metadata: Metadata, tensors: Mapping[str, TensorInfo], data: bytes, head_dim: int
) -> dict[str, Any]:
    """The rotary embedding, as transformers 5 spells it."""
    theta = metadata.real("rope.freq_base", 10_000.0)
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": theta}
    kind = metadata.get("rope.scaling.type")
    if ROPE_FACTORS in tensors:
        context = metadata.count("rope.scaling.original_context_length", 8192)
        factors = _read_factors(tensors[ROPE_FACTORS], data, head_dim)
        return rope | llama3_scaling(factors, theta, head_dim, context)
    if kind in (None, "none"):
        return rope
    rope["rope_type"] = kind
    factor = rope["factor"] = metadata.real("rope.scaling.factor")
    if kind == "linear":
        return rope
    if kind != "yarn":
        raise ValueError(
            f"{metadata.architecture}.rope.scaling.type of the GGUF file is {str(kind)[:40]!r}; "
            "none, linear, yarn and Llama-3's factors can be converted"
        )
    context = metadata.count("rope.scaling.original_context_length")
    rope["original_max_position_embeddings"] = context
    for key, name in (
        ("rope.scaling.yarn_attn_factor", "attention_factor"),
        ("rope.scaling.yarn_beta_fast", "beta_fast"),
        ("rope.scaling.yarn_beta_slow", "beta_slow"),
        ("rope.scaling.yarn_log_multiplier", "mscale_all_dim"),
        ("attention.temperature_scale", "llama_4_scaling_beta"),
    ):
        if metadata.get(key):
            rope[name] = metadata.real(key)
    if "mscale_all_dim" in rope:
        rope["mscale"] = 1.0
    if metadata.get("rope.scaling.attn_factor"):  # what llama.cpp multiplies its own scale by
        theirs = yarn_scale(factor) / yarn_scale(factor, rope.get("mscale_all_dim", 0.0))
        rope["attention_factor"] = theirs * metadata.real("rope.scaling.attn_factor")
    return rope


def yarn_scale(factor: float, mscale: float = 1.0) -> float:
    """By what yarn scales cosines and sines (arXiv 2309.00071, section 3.4)."""
    return 1 + 0.1 * mscale * math.log(max(factor, 1.0))


def _read_factors(info: TensorInfo, data: bytes, head_dim: int) -> list[float]:
    n = head_dim // 2
    if info.type != 0 or info.shape != (n,) or info.start + 4 * n > len(data):
        raise ValueError(
            f"the tensor {ROPE_FACTORS!r}, described at byte {info.described_at} of the GGUF file, "
            f"does not hold {n} numbers of 32 bits"
        )
    return list(struct.unpack_from(f"<{n}f", data, info.start))


def llama3_scaling(
    factors: Sequence[float], theta: float, head_dim: int, context: int
) -> dict[str, Any]:
    """Llama-3's rope scaling, found in what it divides each frequency by.

    `factors`: one per pair of dimensions (conversion/llama.py, `generate_extra_tensors`): 1 for
    short waves, `factor` for long ones, between them 1 / ((1 - s) / factor + s), where s grows
    linearly with the frequency. ValueError where no such settings give these factors.
    """
    if not all(1 <= factor < math.inf for factor in factors):
        raise ValueError(f"{ROPE_FACTORS} of the GGUF file holds numbers that are no factors")
    whole = max(factors, default=1.0)
    turns = [context * theta ** (-2 * i / head_dim) / math.tau for i in range(len(factors))]
    settings = [(1.0, 4.0)]  # what all published models have
    between = [
        (turn, (1 / factor - 1 / whole) / (1 - 1 / whole))
        for turn, factor in zip(turns, factors, strict=True)
        if 1 < factor < whole
    ]
    if len(between) > 1:
        (t0, s0), (t1, s1) = between[0], between[-1]
        if s0 and s0 != s1:
            low = (t1 * s0 - t0 * s1) / (s0 - s1)
            high = low + (t0 - low) / s0
            settings.append((float(f"{low:.4g}"), float(f"{high:.4g}")))
    for low, high in settings:
        if high != low and _agree(factors, turns, whole, low, high):
            return {
                "rope_type": "llama3",
                "factor": whole,
                "low_freq_factor": low,
                "high_freq_factor": high,
                "original_max_position_embeddings": context,
            }
    raise ValueError(
        f"the factors in {ROPE_FACTORS} of the GGUF file are not those of Llama-3's rope scaling "
        f"over {context} positions, the only kind that can be converted"
    )


def _agree(
    factors: Sequence[float], turns: Sequence[float], whole: float, low: float, high: float
) -> bool:
    """Whether these settings give the factors. `turns`: how often each wave fits the context."""
    for factor, turn in zip(factors, turns, strict=True):
        share = min(max((turn - low) / (high - low), 0.0), 1.0)
        if not math.isclose(factor, 1 / ((1 - share) / whole + share), rel_tol=1e-4):
            return False
    return True
