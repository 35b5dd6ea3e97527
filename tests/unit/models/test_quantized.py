"""What says that a model is quantized, and which tensors belong to a quantized table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vocabshift.models.quantized import loading_advice, quantization_method, quantized_parts


def _config(text: Any = None, **keys: Any) -> Any:
    config = SimpleNamespace(**keys)
    config.get_text_config = lambda: text or config
    return config


def test_what_a_config_says() -> None:
    """As JSON or as transformers' object; of the model or of its text part; under the old key."""
    read = SimpleNamespace(quant_method=SimpleNamespace(value="fp8"))
    for config, method in (
        (_config(), None),
        (_config(quantization_config=None), None),
        (_config(quantization_config={"quant_method": "awq"}), "awq"),
        (_config(quantization_config=read), "fp8"),
        (_config(_config(quantization_config={"quant_method": "gptq"})), "gptq"),
        (_config(compression_config={"format": "pack-quantized"}), "pack-quantized"),
        (_config(quantization_config={"bits": 4}), "method not named"),
    ):
        assert method == quantization_method(config)


@pytest.mark.parametrize(
    "part",
    [
        *("qweight", "qzeros", "scales", "g_idx", "SCB", "codes", "W_q", "biases", "input_scale"),
        *("weight_packed", "weight_scale", "weight_scale_inv", "weight_format", "weight._data"),
        *("weight.absmax", "weight.quant_state.bitsandbytes__nf4", "_weight_qdata", "weight:scale"),
    ],
)
def test_parts_of_a_quantized_head(part: str) -> None:
    names = ["lm_head.weight", "lm_head.bias", "lm_head.dense.qweight", f"lm_head.{part}"]
    names += [f"model.layers.0.mlp.{part}", f"other_lm_head.{part}"]
    assert [f"lm_head.{part}"] == quantized_parts(names, "lm_head.weight", is_exact=True)
    assert [] == quantized_parts(names[:3], "lm_head.weight", is_exact=True)


def test_paths_with_and_without_a_prefix() -> None:
    """The longest common ending decides, and the codes come before scales."""
    names = ["a.model.embed_tokens.scales", "a.model.embed_tokens.qweight", "b.embed_tokens.SCB"]
    table = "model.language_model.embed_tokens.weight"
    assert [] == quantized_parts(names[:2], table, is_exact=True)
    assert [names[1], names[0]] == quantized_parts(names[:2], table, is_exact=False)
    both = quantized_parts(names, "model.embed_tokens.weight", is_exact=False)
    assert [names[1], names[0]] == both


def test_advice() -> None:
    assert not loading_advice(None)
    assert "(gptq)" in loading_advice("gptq")
