"""Weights from files that nobody vouches for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from vocabshift.models.load import check_model, load_causal_model, load_configs


class _Call:
    """A pickle of this calls `Path.touch` where it is loaded as Python's pickles are."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


SIZES = {"vocab_size": 8, "hidden_size": 16, "intermediate_size": 24}
CONFIG = LlamaConfig(
    **SIZES, num_hidden_layers=1, num_attention_heads=2, architectures=["LlamaForCausalLM"]
)


def test_a_pickle_calls_nothing(tmp_path: Path) -> None:
    """torch's loader of tensors refuses what is none; without it the file would be there."""
    CONFIG.save_pretrained(tmp_path)
    weights = tmp_path / "pytorch_model.bin"
    torch.save({"model.embed_tokens.weight": _Call(tmp_path / "called")}, weights)
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_causal_model(tmp_path)
    assert not (tmp_path / "called").exists()
    torch.load(weights, weights_only=False)
    assert (tmp_path / "called").exists()


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_kernels_that_a_config_names_are_not_run(key: str, tmp_path: Path) -> None:
    """transformers downloads and runs them where the package kernels is installed."""
    config = CONFIG.to_dict() | {key: "somebody/attention@main:forward"}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=r"asks for somebody/attention.*, which is code"):
        load_configs(tmp_path)
    with pytest.raises(ValueError, match="which is code"):
        check_model(tmp_path)
    check_model(tmp_path, trust_remote_code=True)


def test_architectures_need_not_be_names(tmp_path: Path) -> None:
    """They are shown, whatever they are."""
    config = CONFIG.to_dict() | {"architectures": [{"a": 1}], "model_type": "bert"}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert "bert" == check_model(tmp_path).model_type
