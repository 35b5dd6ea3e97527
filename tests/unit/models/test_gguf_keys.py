"""The hyperparameters of a GGUF file: what llama.cpp would compute otherwise is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from vocabshift.models.gguf_keys import to_hyperparameters

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "vocab_size": 300,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "head_dim": 16,
}
SLIDING, FULL = "sliding_attention", "full_attention"
GEMMA2 = {
    "model_type": "gemma2",
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 16,
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
    "sliding_window": 32,
    "layer_types": [SLIDING, FULL] * 3,
}
GEMMA3 = {
    "model_type": "gemma3_text",
    "query_pre_attn_scalar": 16,
    "sliding_window": 32,
    "layer_types": [SLIDING] * 5 + [FULL],
}


def test_layers_with_and_without_a_window() -> None:
    """Their number, where it is not the architecture's own; none where no layer has a window."""
    assert to_hyperparameters(SMALL | GEMMA2).keys["gemma2.attention.sliding_window"] == 32
    usual = to_hyperparameters(SMALL | GEMMA3).keys
    assert "gemma3.attention.sliding_window_pattern" not in usual
    often = to_hyperparameters(SMALL | GEMMA3 | {"layer_types": [SLIDING, FULL] * 3}).keys
    assert often["gemma3.attention.sliding_window_pattern"] == 2
    none = to_hyperparameters(SMALL | GEMMA3 | {"layer_types": [FULL] * 6}).keys
    assert "gemma3.attention.sliding_window" not in none


def test_positions_as_transformers_4_spells_them() -> None:
    old = SMALL | {"model_type": "llama", "rope_theta": 5e5, "rope_parameters": None}
    assert to_hyperparameters(old).keys["llama.rope.freq_base"] == 5e5
    linear = old | {"rope_scaling": {"type": "linear", "factor": 4.0}}
    keys = to_hyperparameters(linear).keys
    assert (keys["llama.rope.scaling.type"], keys["llama.rope.scaling.factor"]) == ("linear", 4.0)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (GEMMA2 | {"attn_logit_softcapping": None}, "no attn_logit_softcapping"),
        (GEMMA2 | {"final_logit_softcapping": None}, "no final_logit_softcapping"),
        (GEMMA2 | {"layer_types": [FULL] * 6}, "no layer of the model has a window"),
        (GEMMA2 | {"layer_types": [SLIDING, SLIDING, FULL] * 2}, "do not alternate"),
        (GEMMA3 | {"layer_types": [SLIDING, FULL, FULL] * 2}, "do not alternate"),
        (
            {"model_type": "llama", "partial_rotary_factor": 0.5},
            "partial_rotary_factor of config.json is 0.5",
        ),
    ],
)
def test_what_llama_cpp_does_otherwise(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        to_hyperparameters(SMALL | config)
