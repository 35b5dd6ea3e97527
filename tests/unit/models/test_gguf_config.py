"""What the metadata of a GGUF file become in config.json, and Llama-3's rope scaling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from vocabshift.models.gguf_config import Metadata, build_config, llama3_scaling
from vocabshift.tokenizer.formats.gguf_header import Header, TensorInfo

KEYS = {
    "embedding_length": 96,
    "attention.head_count": 4,
    "block_count": 2,
    "feed_forward_length": 8,
    "context_length": 64,
    "attention.layer_norm_rms_epsilon": float(np.float32(1e-5)),
}


def config_of(architecture: str, *, general: dict[str, Any] | None = None, **keys: Any) -> Any:
    """The config from KEYS and more, with "__" for "."."""
    own = {**KEYS, **{key.replace("__", "."): value for key, value in keys.items()}}
    values = {f"{architecture}.{key}": value for key, value in own.items()} | (general or {})
    names = ["token_embd.weight", *(f"blk.{n}.attn_norm.weight" for n in range(70))]
    tensors = tuple(TensorInfo(name, (32, 96), 0, 0, 0) for name in names)
    return build_config(Metadata(values, architecture), Header(values, tensors, 0, {}), b"")


@pytest.mark.parametrize(("architecture", "largest"), [("gemma2", 46), ("gemma3", 62)])
def test_attention_of_the_largest_gemmas_has_another_scale(architecture: str, largest: int) -> None:
    """27B: hidden size / heads; all others: the size of a head (in llama.cpp)."""
    small = config_of(architecture, attention__key_length=32, attention__value_length=32)
    assert 32 == small["query_pre_attn_scalar"]
    keys = {"attention__key_length": 32, "attention__value_length": 32, "block_count": largest}
    assert 24 == config_of(architecture, **keys)["query_pre_attn_scalar"]


def test_layers_of_gemma_with_a_window() -> None:
    """Gemma 2: every other one, from the first; Gemma 3: five of six; without a window none."""
    window, whole = "sliding_attention", "full_attention"
    assert [window, whole, window] == config_of("gemma2", block_count=3)["layer_types"]
    third = config_of("gemma3", block_count=7, attention__sliding_window=512)
    assert [*[window] * 5, whole, window] == third["layer_types"]
    assert 512 == third["sliding_window"]
    assert [whole] * 2 == config_of("gemma3")["layer_types"]


@pytest.mark.parametrize(
    ("architecture", "general", "keys", "model_type"),
    [
        ("llama", {}, {}, "llama"),
        ("llama", {"general.name": "Mistral 7B Instruct"}, {}, "mistral"),
        ("llama", {"general.basename": "mistral"}, {}, "mistral"),
        ("llama", {}, {"attention__sliding_window": 4096}, "mistral"),
        ("mistral3", {}, {}, "mistral"),
        ("mistral3", {}, {"attention__temperature_scale": 0.1}, "ministral3"),
    ],
)
def test_mistrals(
    architecture: str, general: dict[str, Any], keys: dict[str, Any], model_type: str
) -> None:
    config = config_of(architecture, general=general, **keys)
    assert model_type == config["model_type"]
    if model_type != "llama":
        assert keys.get("attention__sliding_window") == config["sliding_window"]


def test_numbers_are_those_from_before_32_bits() -> None:
    config = config_of("qwen2", rope__freq_base=float(np.float32(1e6)))
    assert 1e-5 == config["rms_norm_eps"]
    assert {"rope_type": "default", "rope_theta": 1e6} == config["rope_parameters"]
    assert 4 == config["num_key_value_heads"]
    assert config["tie_word_embeddings"]


def factors_of(
    factor: float, low: float, high: float, theta: float, dim: int, context: int
) -> list[float]:
    """What each frequency is divided by, as transformers' `_compute_llama3_parameters` has it."""
    found = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * theta ** (i / dim)
        smooth = (context / wavelength - low) / (high - low)
        if wavelength < context / high:
            found.append(1.0)
        elif wavelength > context / low:
            found.append(factor)
        else:
            found.append(1 / ((1 - smooth) / factor + smooth))
    return [float(np.float32(value)) for value in found]


@pytest.mark.parametrize(
    ("factor", "low", "high", "theta", "dim"),
    [
        (8.0, 1.0, 4.0, 5e5, 128),  # Llama 3.1
        (32.0, 1.0, 4.0, 5e5, 64),  # Llama 3.2
        (16.0, 2.0, 6.0, 1e5, 96),
        (4.0, 1.0, 8.0, 1e4, 128),
    ],
)
def test_settings_are_found(factor: float, low: float, high: float, theta: float, dim: int) -> None:
    found = llama3_scaling(factors_of(factor, low, high, theta, dim, 8192), theta, dim, 8192)
    assert "llama3" == found["rope_type"]
    assert factor == found["factor"]
    assert 8192 == found["original_max_position_embeddings"]
    assert low == pytest.approx(found["low_freq_factor"], rel=1e-2)
    assert high == pytest.approx(found["high_freq_factor"], rel=1e-2)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([1.0, 2.0, 1.0, 8.0], "are not those of Llama-3's rope scaling over 8192 positions"),
        ([8.0, 1.0, 1.0, 1.0], "are not those"),
        ([1.0, float("nan"), 8.0, 8.0], "no factors"),
        ([0.0, 0.0, 0.0, 0.0], "no factors"),
    ],
)
def test_other_factors_are_refused(factors: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        llama3_scaling(factors, 5e5, 8, 8192)
