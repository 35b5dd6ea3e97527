"""The metadata of a GGUF file from the config of a model: the way back of `gguf_config`.

Owns which models llama.cpp computes as transformers does. What its graphs of models do not know (an
activation, a window, a scaling of positions) is refused, or is a warning where it shows in long
texts alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from vocabshift.models.gguf_config import GEMMA, LARGEST_GEMMA, yarn_scale

ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "ministral3": "mistral3",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
}
"""`model_type` of a config.json -> `general.architecture`."""


class Hyperparameters(NamedTuple):
    """What the file says of the model itself."""

    architecture: str
    keys: dict[str, Any]
    config: dict[str, Any]  # with what is left out in it filled in; for `expected_tensors`
    rope_factors: list[float] | None  # of Llama-3's scaling: the tensor rope_freqs.weight
    warnings: list[str]


def to_hyperparameters(given: Mapping[str, Any]) -> Hyperparameters:
    """The keys of a config, as transformers' `to_dict` gives it.

    ValueError for a model that llama.cpp does not have, or would compute otherwise.
    """
    model_type = given.get("model_type")
    architecture = ARCHITECTURES.get(str(model_type))
    if architecture is None:
        raise ValueError(
            f"a model of type {model_type!r} cannot be written as GGUF; supported are "
            f"{', '.join(ARCHITECTURES)}"
        )
    if given.get("quantization_config"):
        raise ValueError(
            "the model is quantized, which cannot be written as GGUF: give the unquantized one, "
            "with the type of the file (dtype, such as Q8_0)"
        )
    config = dict(given)
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    config["num_key_value_heads"] = config.get("num_key_value_heads") or heads
    head_dim = config["head_dim"] = config.get("head_dim") or hidden // heads
    config["tie_word_embeddings"] = bool(config.get("tie_word_embeddings"))
    _check_graph(config, architecture)
    warnings: list[str] = []
    own: dict[str, Any] = {
        "vocab_size": config["vocab_size"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": hidden,
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.dimension_count": head_dim,
    }
    main, local = _ropes(config)
    own["rope.freq_base"] = float(main["rope_theta"])
    if local is not None:
        own["rope.freq_base_swa"] = float(local)
    factors = _scaling(main, architecture, own)
    if architecture in ("gemma2", "gemma3"):
        own |= _windows(config, architecture)
    elif _window(config) is not None:
        own["attention.sliding_window"] = _window(config)
        warnings.append(
            f"the model looks back {_window(config)} tokens, and llama.cpp's {architecture} over "
            "the whole text: longer texts give other answers"
        )
    for cap in ("attn_logit_softcapping", "final_logit_softcapping"):
        if config.get(cap):
            own[cap] = float(config[cap])
    keys = {f"{architecture}.{key}": value for key, value in own.items()}
    return Hyperparameters(architecture, keys, config, factors, warnings)


def _check_graph(config: Mapping[str, Any], architecture: str) -> None:
    """ValueError for what llama.cpp's graph of the architecture does not compute."""

    def need(key: str, value: Any, *possible: Any) -> None:
        if value not in possible:
            wanted = " or ".join(map(repr, possible))
            raise ValueError(
                f"{key} of config.json is {value!r}, and llama.cpp's {architecture} computes "
                f"with {wanted} alone"
            )

    is_gemma = architecture in GEMMA
    if is_gemma:
        activation = config.get("hidden_activation") or "gelu_pytorch_tanh"
        need("hidden_activation", activation, "gelu_pytorch_tanh")
    else:
        need("hidden_act", config.get("hidden_act", "silu"), "silu")
    if architecture not in ("llama", "qwen2"):
        need("attention_bias", bool(config.get("attention_bias")), False)
    if architecture != "llama":
        need("mlp_bias", bool(config.get("mlp_bias")), False)
    if architecture in ("gemma", "gemma2"):
        need("tie_word_embeddings", config["tie_word_embeddings"], True)
    if architecture in LARGEST_GEMMA:
        is_largest = config["num_hidden_layers"] == LARGEST_GEMMA[architecture]
        size = config["hidden_size"] // config["num_attention_heads"]
        size = size if is_largest else config["head_dim"]
        need("query_pre_attn_scalar", config.get("query_pre_attn_scalar"), size)
        need("use_bidirectional_attention", bool(config.get("use_bidirectional_attention")), False)
    if architecture == "gemma2":
        for cap in ("attn_logit_softcapping", "final_logit_softcapping"):
            if not config.get(cap):
                raise ValueError(f"config.json has no {cap}, and llama.cpp's gemma2 always caps")
    if architecture == "gemma3":
        need("attn_logit_softcapping", config.get("attn_logit_softcapping"), None)


def _window(config: Mapping[str, Any]) -> int | None:
    """How far a Mistral or Qwen looks back, if not over the whole text."""
    window = config.get("sliding_window")
    always = config["model_type"] in ("mistral", "ministral3")
    is_used = config.get("use_sliding_window", always)
    return window if window and is_used and window < config["max_position_embeddings"] else None


def _windows(config: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    """Gemma's layers with and without a window; ValueError where they do not alternate evenly."""
    window = config.get("sliding_window")
    types = config.get("layer_types") or []
    n = config["num_hidden_layers"]
    if "sliding_attention" not in types or not window:
        if architecture == "gemma2":
            raise ValueError("no layer of the model has a window, and llama.cpp's gemma2 needs it")
        return {}
    usual = 2 if architecture == "gemma2" else 6
    every = next((i + 1 for i, kind in enumerate(types) if kind == "full_attention"), usual)
    expected = ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(n)]
    if types != expected or (architecture == "gemma2" and every != usual):
        raise ValueError(
            "layer_types of config.json do not alternate as llama.cpp's "
            f"{architecture} does: one layer without a window after {usual - 1} with one"
        )
    keys: dict[str, Any] = {"attention.sliding_window": window}
    return keys | ({"attention.sliding_window_pattern": every} if every != usual else {})


def _ropes(config: Mapping[str, Any]) -> tuple[dict[str, Any], float | None]:
    """The rotary embedding, as transformers 5 or 4 spells it, and the base of layers with a window.

    ValueError where only a part of each head is rotated.
    """
    rope = config.get("rope_parameters")
    local = config.get("rope_local_base_freq")
    if rope is None:
        rope = {
            "rope_theta": config.get("rope_theta", 10_000.0),
            **(config.get("rope_scaling") or {}),
        }
    elif "full_attention" in rope:
        local = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    rope = dict(rope)
    rope.setdefault("rope_theta", config.get("rope_theta", 10_000.0))
    rope["rope_type"] = rope.get("rope_type") or rope.get("type") or "default"
    part = rope.get("partial_rotary_factor", config.get("partial_rotary_factor")) or 1
    if part != 1:
        raise ValueError(
            f"partial_rotary_factor of config.json is {part}; llama.cpp rotates whole heads here"
        )
    return rope, local


def _scaling(rope: Mapping[str, Any], architecture: str, own: dict[str, Any]) -> list[float] | None:
    """Add the keys of a scaling of positions to `own`; the factors of Llama-3's."""
    kind, context = rope["rope_type"], rope.get("original_max_position_embeddings")
    if kind == "default":
        return None
    if kind == "llama3":
        own["rope.scaling.original_context_length"] = context
        return _llama3_factors(rope, own["rope.dimension_count"])
    if kind not in ("linear", "yarn"):
        raise ValueError(
            f"the rope_type of config.json is {kind!r}; default, linear, yarn and llama3 can be "
            "written as GGUF"
        )
    own["rope.scaling.type"] = kind
    own["rope.scaling.factor"] = float(rope["factor"])
    if kind == "yarn":
        own["rope.scaling.original_context_length"] = context or own["context_length"]
        own.update(_yarn(rope, architecture))
    return None


def _yarn(rope: Mapping[str, Any], architecture: str) -> dict[str, float]:
    """Keys of yarn; ValueError for the setting that llama.cpp does not have.

    Subtle: llama.cpp overwrites `yarn_attn_factor` by its own scale, for which it knows mistral3's
    `mscale_all_dim` alone (llama-context.cpp). It multiplies that by `attn_factor`.
    """
    if not rope.get("truncate", True):
        raise ValueError(
            "truncate of config.json is false; llama.cpp rounds the dimensions between which "
            "yarn blends"
        )
    names = {
        "beta_fast": "rope.scaling.yarn_beta_fast",
        "beta_slow": "rope.scaling.yarn_beta_slow",
        "llama_4_scaling_beta": "attention.temperature_scale",
    }
    keys = {key: float(rope[name]) for name, key in names.items() if rope.get(name)}
    factor, mscale, all_dim = rope["factor"], rope.get("mscale"), rope.get("mscale_all_dim")
    wanted = theirs = yarn_scale(factor)
    if mscale and all_dim:
        wanted = yarn_scale(factor, mscale) / yarn_scale(factor, all_dim)
        if architecture == "mistral3":
            keys["rope.scaling.yarn_log_multiplier"] = float(all_dim)
            theirs /= yarn_scale(factor, all_dim)
    wanted = rope.get("attention_factor") or wanted
    if not math.isclose(wanted, theirs, rel_tol=1e-6):
        keys["rope.scaling.attn_factor"] = wanted / theirs
    return keys


def _llama3_factors(rope: Mapping[str, Any], head_dim: int) -> list[float]:
    """By what each frequency is divided (conversion/llama.py, `generate_extra_tensors`)."""
    context, whole = rope["original_max_position_embeddings"], rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    if not low < high:
        raise ValueError(
            f"low_freq_factor of config.json is {low} and high_freq_factor {high}; the first must "
            "be the smaller one"
        )
    factors = []
    for i in range(0, head_dim, 2):
        turns = context * rope["rope_theta"] ** (-i / head_dim) / math.tau
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        factors.append(1 / ((1 - share) / whole + share))
    return factors
