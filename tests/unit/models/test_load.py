"""Weights from files that nobody vouches for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from vocabshift.models.facts import MOST_LAYERS, check_counts, check_size
from vocabshift.models.load import check_model, load_causal_model, load_configs, load_model


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


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"num_hidden_layers": 10**9}, "more parts than any model has: num_hidden_layers = 1,000,"),
        ({"num_labels": 10**9}, "num_labels = 1,000,000,000"),
        ({"text_config": {"n_layer": 1000, "num_experts": 1000}}, "num_experts = 1,000"),
        ({"vocab_size": 10**12}, "describes 32,000,000,002,224 weights, and its files of"),
        ({"num_key_value_heads": 10**8, "num_attention_heads": 10**8}, "cannot be (loaded|built)"),
    ],
)
def test_a_config_that_asks_for_more_than_memory(
    asked: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """transformers would build the layers first, and fill rows that are not stored at random."""
    LlamaForCausalLM(CONFIG).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG.to_dict() | asked), encoding="utf-8")
    for load in (load_causal_model, load_model):
        with pytest.raises(ValueError, match=said):
            load(tmp_path)


def test_counts_that_models_have() -> None:
    """Layers and experts of Kimi-K2, experts of Switch-C, and the most layers."""
    for config in ((61, 384), (15, 2048), (MOST_LAYERS, 20)):
        check_counts(dict(zip(("num_hidden_layers", "n_routed_experts"), config, strict=True)))
    with pytest.raises(ValueError, match="n_layer = 5,001"):
        check_counts({"n_layer": MOST_LAYERS + 1})
    check_counts({"num_labels": True, "my_layers": "many", "depth": [1, 2], "experts": 1e9})


def test_weights_that_are_packed(tmp_path: Path) -> None:
    """Eight to a byte are not refused; a folder without weights is the loader's to refuse."""
    n_weights = sum(tensor.numel() for tensor in LlamaForCausalLM(CONFIG).parameters())
    check_size(LlamaForCausalLM, CONFIG, tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(-(-n_weights // 8)))
    check_size(LlamaForCausalLM, CONFIG, tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(n_weights // 8 - 1))
    with pytest.raises(ValueError, match=f"describes {n_weights:,} weights"):
        check_size(AutoModelForCausalLM, CONFIG, tmp_path)
