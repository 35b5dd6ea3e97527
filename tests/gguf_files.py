"""Small models as GGUF files, written by the rules of llama.cpp's converter with the gguf package.

The rules (conversion/base.py, llama.py, gemma.py, qwen.py, mistral3.py of llama.cpp) are written
here again, from transformers' model to the file: vocabshift reads the other way. Names of tensors
come from the gguf package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from small_models import old_tokenizer, sentencepiece_tokenizer, special_ids
from vocabshift.text import patterns
from vocabshift.tokenizer.formats.sentencepiece import PieceType
from vocabshift.tokenizer.tokenizer import Tokenizer

Kinds = Mapping[str, gguf.GGMLQuantizationType]
F32 = gguf.GGMLQuantizationType.F32
ARCHITECTURES = {
    **dict.fromkeys(("llama", "mistral"), "llama"),
    **{name: name for name in ("qwen2", "qwen3", "gemma", "gemma2")},
    "gemma3_text": "gemma3",
    "ministral3": "mistral3",
}
_SCALES = {  # where K-quants keep their 16-bit scales: handmade blocks need finite ones
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
}
SIZE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
}
_LONG = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
_SCALED = {**_YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
_LOCAL = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}),
    "llama, tied": ("llama", {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "llama, biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, wide heads": ("llama", {"head_dim": 16}),
    "llama-3": (
        "llama",
        {
            "head_dim": 64,
            "rope_parameters": {
                **_LONG,
                "rope_theta": 5e5,
                "original_max_position_embeddings": 8192,
            },
        },
    ),
    "mistral": ("mistral", {"head_dim": 16, "sliding_window": 8}),
    "mistral3": (
        "ministral3",
        {"head_dim": 8, "rope_parameters": {**_SCALED, "rope_theta": 1e6}},
    ),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2, yarn": ("qwen2", {"rope_parameters": {**_YARN, "rope_theta": 1e6}}),
    "qwen3": ("qwen3", {"head_dim": 128}),
    "gemma": ("gemma", {"head_dim": 16}),
    "gemma2": ("gemma2", {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8}),
    "gemma3": (
        "gemma3_text",
        {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8, "num_hidden_layers": 7},
    ),
    "gemma3, scaled": (
        "gemma3_text",
        {
            "head_dim": 16,
            "query_pre_attn_scalar": 16,
            "sliding_window": 8,
            "num_hidden_layers": 6,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                **_LOCAL,
            },
        },
    ),
}


def tokenizer_of(kind: str, place: Path) -> Tokenizer:
    """Gemma's are SentencePiece-like, the others byte-level."""
    if kind.startswith("gemma"):
        tokenizer = sentencepiece_tokenizer(place)
    else:
        tokenizer = replace(
            old_tokenizer(), pre_tokenizer=patterns.to_spec(patterns.get_pattern("gpt2"))
        )
    config = {**tokenizer.config, "pad_token": "<pad>"}
    return replace(tokenizer, config=config, chat_template="{{ messages[0].content }}")


def model_of(layout: str, tokenizer: Tokenizer) -> Any:
    """A random model of transformers."""
    model_type, changes = LAYOUTS[layout]
    if model_type not in transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES:
        import pytest

        pytest.skip(f"this version of transformers has no {model_type}")
    ids = special_ids(tokenizer)
    size = {"vocab_size": tokenizer.row_count, "pad_token_id": ids["<pad>"]}
    ends = {"bos_token_id": ids["<s>"], "eos_token_id": ids["</s>"]}
    config = transformers.AutoConfig.for_model(model_type, **{**SIZE, **size, **ends, **changes})
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for parameter in (p for p in model.parameters() if p.dim() == 1):
        torch.nn.init.normal_(parameter)
    return model.eval()


def write_gguf(
    file: Path,
    model: Any,
    tokenizer: Tokenizer,
    *,
    kind: str = "F32",
    pre: str = "gpt-2",
    **metadata: Any,
) -> Path:
    """Write a model of transformers; matrices are stored as `kind`, all else in 32 bits.

    `metadata`: more keys, with "__" for ".", replacing others; None removes one.
    """
    config, architecture = model.config, ARCHITECTURES[model.config.model_type]
    writer = gguf.GGUFWriter(file, architecture)
    keys = {
        **_hyperparameters(config, architecture),
        **vocabulary(tokenizer, pre),
        **{key.replace("__", "."): value for key, value in metadata.items()},
    }
    for key, value in keys.items():
        if value is not None:
            _add(writer, key, value)
    number = next(n for n, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(number, config.num_hidden_layers)
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    rng = np.random.default_rng(0)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        if architecture in ("llama", "mistral3"):
            if name.endswith(("q_proj.weight", "q_proj.bias")):
                values = permute(values, heads)
            if name.endswith(("k_proj.weight", "k_proj.bias")):
                values = permute(values, kv_heads)
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert stored is not None, name
        _add_tensor(writer, stored, values, kind, rng)
    factors = _rope_factors(config)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def vocabulary(tokenizer: Tokenizer, pre: str) -> dict[str, Any]:
    """The keys of a byte-level or SentencePiece-like tokenizer; `pre`: of its pre-tokenizer."""
    keys = _byte_level(tokenizer, pre) if tokenizer.model.is_byte_level else _pieces(tokenizer)
    return {**keys, "tokenizer.chat_template": tokenizer.chat_template}


def permute(values: NDArray[np.float32], n_heads: int) -> NDArray[np.float32]:
    """`LlamaModel.permute` of llama.cpp's converter."""
    rows = values.shape[0]
    halves = values.reshape(n_heads, 2, rows // n_heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)


def _add_tensor(writer: Any, name: str, values: Any, kind: str, rng: np.random.Generator) -> None:
    qtype = gguf.GGMLQuantizationType[kind if values.ndim > 1 else "F32"]
    block, size = gguf.GGML_QUANT_SIZES[qtype]
    if kind in _SCALES and values.ndim > 1:
        shape = (values.shape[0], values.shape[1] // block, size)
        data = rng.integers(0, 256, shape, dtype=np.uint8)
        for place in _SCALES[kind]:
            data[..., place : place + 2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        data = data.reshape(values.shape[0], -1)
    else:
        data = gguf.quants.quantize(np.ascontiguousarray(values), qtype)
    writer.add_tensor(name, data, raw_dtype=qtype)


def _add(writer: Any, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def _hyperparameters(config: Any, architecture: str) -> dict[str, Any]:
    rope = dict(config.rope_parameters)
    local = rope.pop("sliding_attention", None)
    rope = rope.pop("full_attention", rope)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    keys: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.freq_base": float(rope["rope_theta"]),
    }
    if architecture in ("llama", "mistral3"):
        keys["rope.dimension_count"] = head_dim
    if architecture not in ("llama", "qwen2"):
        keys |= {"attention.key_length": head_dim, "attention.value_length": head_dim}
    if architecture in ("gemma", "gemma2"):
        del keys["rope.freq_base"]
    if architecture in ("gemma2", "gemma3"):
        keys["attention.sliding_window"] = config.sliding_window
        for cap in ("attn_logit_softcapping", "final_logit_softcapping"):
            keys[cap] = getattr(config, cap)
    if local is not None:
        keys["rope.freq_base_swa"] = float(local["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        keys["rope.scaling.type"] = rope["rope_type"]
        keys["rope.scaling.factor"] = float(rope["factor"])
    if rope["rope_type"] == "yarn":
        keys["rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
        for name in ("beta_fast", "beta_slow"):
            if name in rope:
                keys[f"rope.scaling.yarn_{name}"] = float(rope[name])
    if architecture == "mistral3" and "llama_4_scaling_beta" in rope:
        keys["rope.scaling.yarn_log_multiplier"] = float(rope["mscale_all_dim"])
        keys["attention.temperature_scale"] = float(rope["llama_4_scaling_beta"])
    return {f"{architecture}.{key}": value for key, value in keys.items()}


def _rope_factors(config: Any) -> NDArray[np.float32] | None:
    """`LlamaModel.generate_extra_tensors` of llama.cpp's converter."""
    rope = config.rope_parameters
    if rope.get("rope_type") != "llama3":
        return None
    dim, context = config.head_dim, rope["original_max_position_embeddings"]
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    freqs = 1.0 / (rope["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    factors = []
    for freq in freqs.tolist():
        wavelength = 2 * math.pi / freq
        if wavelength < context / high:
            factors.append(1.0)
        elif wavelength > context / low:
            factors.append(factor)
        else:
            smooth = (context / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, np.float32)


def _tokens(tokenizer: Tokenizer) -> tuple[list[str], list[int]]:
    ids = {**tokenizer.vocab, **{token.content: token.id for token in tokenizer.added_tokens}}
    texts = sorted(ids, key=ids.__getitem__)
    control = {token.content for token in tokenizer.added_tokens if token.special}
    own = {token.content for token in tokenizer.added_tokens} - control
    types = {**dict.fromkeys(control, PieceType.CONTROL), **dict.fromkeys(own, 4)}
    return texts, [int(types.get(text, PieceType.NORMAL)) for text in texts]


def _roles(tokenizer: Tokenizer, texts: list[str]) -> dict[str, Any]:
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    return {
        f"tokenizer.ggml.{name}_token_id": texts.index(tokenizer.config[f"{role}_token"])
        for role, name in names.items()
        if f"{role}_token" in tokenizer.config
    }


def _byte_level(tokenizer: Tokenizer, pre: str) -> dict[str, Any]:
    texts, types = _tokens(tokenizer)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [f"{left} {right}" for left, right in tokenizer.model.merges],
        "tokenizer.ggml.add_bos_token": True,
        **_roles(tokenizer, texts),
    }


def _pieces(tokenizer: Tokenizer) -> dict[str, Any]:
    texts, types = _tokens(tokenizer)
    ranks = {left + right: rank for rank, (left, right) in enumerate(tokenizer.model.merges)}
    types = [
        int(PieceType.BYTE) if text.startswith("<0x") and kind == 1 else kind
        for text, kind in zip(texts, types, strict=True)
    ]
    unknown = tokenizer.config.get("unk_token")
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.scores": [-float(ranks.get(text, len(ranks))) for text in texts],
        "tokenizer.ggml.token_type": [
            int(PieceType.UNKNOWN) if text == unknown else kind
            for text, kind in zip(texts, types, strict=True)
        ],
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": True,
        "tokenizer.ggml.remove_extra_whitespaces": True,
        **_roles(tokenizer, texts),
    }
