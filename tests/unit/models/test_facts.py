"""What a model pays for rows, read from its folder without loading it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from vocabshift.models.facts import model_facts, number_of_parameters, size_of_weights

LLAMA = {
    "hidden_size": 2048,
    "vocab_size": 128256,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
"""The sizes of Llama-3.2-1B."""


def folder(path: Path, config: dict[str, Any]) -> Path:
    """A model folder that holds a config alone."""
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    return path


def test_a_config_alone_gives_an_estimate(tmp_path: Path) -> None:
    """Llama-3.2-1B has 1,235,814,400 parameters; the estimate is within a thousandth."""
    facts = model_facts(folder(tmp_path / "m", LLAMA))
    assert facts.is_estimated
    assert abs(facts.parameters(128256) / 1_235_814_400 - 1) < 0.001
    assert facts.embedding_parameters(10) == 10 * 2048
    assert facts.bytes_read_per_token(128256) == facts.parameters(128256) * 2
    assert facts.logits_bytes(128256, 1000) == 128256 * 4000


def test_untied_heads_count_twice_and_are_read_once(tmp_path: Path) -> None:
    """Of the input embedding only one row is read for a token."""
    facts = model_facts(folder(tmp_path / "m", {**LLAMA, "tie_word_embeddings": False}))
    more = facts.parameters(128256 + 1000) - facts.parameters(128256)
    assert more == 2 * 1000 * 2048
    read = facts.bytes_read_per_token(128256 + 1000) - facts.bytes_read_per_token(128256)
    assert read == 1000 * 2048 * 2


def test_tensors_are_counted_where_they_are(tmp_path: Path) -> None:
    """The headers of safetensors files give the body exactly."""
    small = {**LLAMA, "hidden_size": 4, "vocab_size": 10}
    path = folder(tmp_path / "m", small)
    tensors = {
        "model.embed_tokens.weight": np.zeros((10, 4), np.float32),
        "model.norm.weight": np.zeros(4, np.float32),
        "model.layers.0.mlp.weight": np.zeros((6, 4), np.float32),
    }
    save_file(tensors, path / "model.safetensors")
    facts = model_facts(path)
    assert not facts.is_estimated
    assert facts.body_parameters == 4 + 24


def test_a_wrapper_keeps_its_sizes_in_text_config(tmp_path: Path) -> None:
    """Multimodal models."""
    facts = model_facts(folder(tmp_path / "m", {"text_config": LLAMA, "vision_config": {}}))
    assert (facts.hidden_size, facts.rows) == (2048, 128256)


TEXTS_WITHOUT_SIZES = (
    *("{}", "[]", "no json", '{"hidden_size": "wide"}'),
    '{"hidden_size": 16, "vocab_size": Infinity}',
    '{"hidden_size": 16, "vocab_size": 9}',
    '{"hidden_size": 16, "vocab_size": 9, "n_layer": 1, "n_head": 2, "head_dim": Infinity}',
)


@pytest.mark.parametrize("text", TEXTS_WITHOUT_SIZES)
def test_a_config_that_says_nothing_is_refused(tmp_path: Path, text: str) -> None:
    """In one line, with what is missing."""
    path = folder(tmp_path / "m", {})
    (path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json"):
        model_facts(path)


def test_a_damaged_tensor_file_is_refused(tmp_path: Path) -> None:
    """A header that claims more than the file holds."""
    path = folder(tmp_path / "m", LLAMA)
    (path / "model.safetensors").write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="damaged"):
        model_facts(path)


def test_a_hub_name_needs_its_config_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository without one, and a download that fails, are errors that say so."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    asked: list[list[str]] = []

    def download(_: str, *, allow_patterns: list[str], **__: object) -> str:
        asked.append(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(FileNotFoundError, match="give its config: it holds no config"):
        model_facts("someone/model")
    folder(tmp_path, LLAMA)
    assert (2048, "someone/model") == (
        model_facts("someone/model").hidden_size,
        model_facts("someone/model").name,
    )
    assert [["config.json"]] * 3 == asked

    def fail(*_: object, **__: object) -> str:
        raise ConnectionError("lost")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(FileNotFoundError, match="does not give its config: lost"):
        model_facts("someone/model")


def test_parameters_are_those_stored(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"12345")
    assert (None, 5) == (number_of_parameters(tmp_path), size_of_weights(tmp_path))
    tensors = {"a": np.zeros((3, 4), np.float32), "b": np.zeros(5, np.float16)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert 17 == number_of_parameters(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size == size_of_weights(tmp_path)
