"""Model or tokenizer: told by what lies in a folder, on the Hub, or in its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from vocabshift.models.source import find_model, number_of_parameters, size_of_weights


@pytest.mark.parametrize(
    ("files", "is_model"),
    [
        (["config.json", "model.safetensors"], True),
        (["config.json", "model-00001-of-00002.safetensors", "tokenizer.json"], True),
        (["config.json", "pytorch_model.bin"], True),
        (["config.json", "tokenizer.json"], False),
        (["config.json", "training_args.bin"], False),
        (["adapter_model.safetensors", "tokenizer.json"], False),
        ([], False),
    ],
)
def test_weights_beside_a_config(tmp_path: Path, files: list[str], is_model: bool) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    assert (tmp_path if is_model else None) == find_model(tmp_path)


def test_what_is_no_folder(tmp_path: Path) -> None:
    """Files, names that no file can have, and values are no models."""
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    assert [None] * 4 == [find_model(each) for each in (file, str(file), "a\0b", {"vocab": {}})]


def test_the_hub_is_asked_before_weights_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a model's files are downloaded, and of two formats only safetensors."""
    import huggingface_hub

    fetched: list[dict[str, Any]] = []
    listing = ["config.json", "model.safetensors", "pytorch_model.bin", "original/x.safetensors"]

    def snapshot_download(name: str, **options: Any) -> str:
        fetched.append(options)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda _: listing)
    assert tmp_path == find_model("someone/model")
    assert "pytorch_model*.bin" not in fetched[0]["allow_patterns"]
    listing.remove("model.safetensors")
    assert tmp_path == find_model("someone/model")
    assert "pytorch_model*.bin" in fetched[1]["allow_patterns"]
    listing.remove("pytorch_model.bin")
    assert find_model("someone/model") is None
    assert 2 == len(fetched)


def test_without_a_net_the_cache_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def offline(_: str) -> list[str]:
        raise OSError("no net")

    monkeypatch.setattr(huggingface_hub, "list_repo_files", offline)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    assert find_model("someone/model") is None
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("")
    assert tmp_path == find_model("someone/model")


def test_parameters_are_those_stored(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"12345")
    assert (None, 5) == (number_of_parameters(tmp_path), size_of_weights(tmp_path))
    tensors = {"a": np.zeros((3, 4), np.float32), "b": np.zeros(5, np.float16)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert 17 == number_of_parameters(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size == size_of_weights(tmp_path)
