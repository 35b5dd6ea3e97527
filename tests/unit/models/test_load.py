"""Weights from files that nobody vouches for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AlbertConfig,
    AutoModel,
    AutoModelForCausalLM,
    GPTNeoConfig,
    LlamaConfig,
    LlamaForCausalLM,
)

from vocabshift.models import tables
from vocabshift.models.facts import MOST, check_counts, check_weights
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


def edited(folder: Path, **asked: Any) -> Path:
    """A model whose config says this too."""
    LlamaForCausalLM(CONFIG).save_pretrained(folder)
    text = json.dumps(CONFIG.to_dict() | asked)
    (folder / "config.json").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"num_hidden_layers": 10**9}, "num_hidden_layers = 1,000,000,000; no model has 5,000"),
        ({"num_labels": 10**9}, "num_labels = 1,000,000,000"),
        ({"text_config": {"n_layer": 10**6}}, "n_layer = 1,000,000"),
        (
            {"vocab_size": 10**12},
            "describes 32,000,000,002,224 numbers of weights, and its files of",
        ),
        ({"num_key_value_heads": 10**8, "num_attention_heads": 10**8}, "cannot be (loaded|built)"),
    ],
)
def test_a_config_that_asks_for_more_than_memory(
    asked: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """transformers would build the layers first, and fill rows that are not stored at random."""
    folder = edited(tmp_path, **asked)
    for load in (load_causal_model, load_model):
        with pytest.raises(ValueError, match=said):
            load(folder)


def test_counts_that_models_have() -> None:
    """As many as are allowed; what is no number is for transformers to refuse."""
    check_counts({"num_hidden_layers": MOST["layers"], "vision_config": {"depth": 32}})
    with pytest.raises(ValueError, match="n_layer = 5,001"):
        check_counts({"n_layer": MOST["layer"] + 1})
    check_counts({"num_labels": True, "my_layers": "many", "depth": [1, 2], "n_layers": 1e9})


def test_weights_that_are_packed(tmp_path: Path) -> None:
    """Eight to a byte are not refused; a folder without weights is the loader's to refuse."""
    n_weights = sum(tensor.numel() for tensor in LlamaForCausalLM(CONFIG).parameters())
    check_weights(tmp_path, CONFIG, LlamaForCausalLM)
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(-(-n_weights // 8)))
    check_weights(tmp_path, CONFIG, LlamaForCausalLM)
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(n_weights // 8 - 1))
    with pytest.raises(ValueError, match=f"describes {n_weights:,} numbers of weights"):
        check_weights(tmp_path, CONFIG, AutoModelForCausalLM)


def test_weights_are_read_from_the_folder_alone(tmp_path: Path) -> None:
    """An index of torch's files may name no other place, and a config no other file."""
    folder = edited(tmp_path / "a")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    index = folder / "pytorch_model.bin.index.json"
    torch.save(weights, folder / "pytorch_model-1.bin")

    def named(name: str) -> Path:
        index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(weights, name)}))
        return folder

    load_causal_model(named("pytorch_model-1.bin"))
    for name in ("../pytorch_model.bin", f"{tmp_path}/pytorch_model.bin", "w.bin"):
        with pytest.raises(ValueError, match=f"names '{name}', which is no pytorch_model"):
            load_causal_model(named(name))
    index.write_text("[]")
    with pytest.raises(ValueError, match=r"index\.json is damaged"):
        load_model(folder)
    other = edited(tmp_path / "b", transformers_weights="w.safetensors")
    with pytest.raises(ValueError, match=r"rename that to model\.safetensors"):
        load_causal_model(other, trust_remote_code=True)


def test_an_adapter_beside_weights_is_not_applied(tmp_path: Path) -> None:
    """Nor does it hide that the weights are not those of the model."""
    folder = edited(tmp_path)
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(ValueError, match="merge it with vocabshift merge"):
        load_causal_model(folder)


@pytest.mark.parametrize(
    "config",
    [
        GPTNeoConfig(
            vocab_size=9,
            hidden_size=16,
            num_layers=1,
            num_heads=2,
            attention_types=[[["global"], 1]],
            max_position_embeddings=50_000,
        ),
        LlamaConfig(
            **SIZES,
            num_hidden_layers=1,
            num_attention_heads=2,
            rope_parameters={
                "rope_type": "linear",
                "factor": 2.0,
                "rope_theta": 1e4,
                "partial_rotary_factor": 5e7,
            },
        ),
    ],
    ids=["masks", "rope"],
)
def test_buffers_that_memory_does_not_hold(config: Any, tmp_path: Path) -> None:
    """A model computes them for itself, so no file says how large they are."""
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(10_000_000))
    with pytest.raises(ValueError, match="numbers of buffers"):
        check_weights(tmp_path, config, AutoModelForCausalLM)


def test_a_model_of_too_many_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the key that asks for them is called."""
    monkeypatch.setattr(tables, "_MOST_MODULES", 30)
    albert = AlbertConfig(
        **SIZES, embedding_size=16, num_hidden_layers=1, num_attention_heads=2, inner_group_num=9
    )
    with pytest.raises(ValueError, match="more than 30 modules"):
        tables.build_empty(AutoModel, albert)
    monkeypatch.undo()
    assert "meta" == tables.build_empty(AutoModel, albert).device.type


@pytest.mark.parametrize("load", [load_model, load_causal_model])
def test_what_is_no_list_of_architectures(load: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="architectures in its config is no list"):
        load(edited(tmp_path, architectures=7))
