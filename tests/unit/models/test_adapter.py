"""Adapter or model: decided by the files of a folder, of the Hub, or of its cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vocabshift.models.adapter import is_adapter, open_adapter

FILES = [
    (["adapter_config.json", "adapter_model.safetensors", "tokenizer.json"], True),
    (["adapter_config.json", "config.json", "model.safetensors"], False),
    (["config.json", "model.safetensors"], False),
]


def hub(monkeypatch: pytest.MonkeyPatch, listing: Any, cache: Any) -> None:
    """Stands in for the Hub's client: what it lists and what its cache holds, or raises."""
    import huggingface_hub

    def give(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *_, **__: give(listing))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: give(cache))


@pytest.mark.parametrize(("files", "expected"), FILES)
def test_its_config_without_a_models(
    files: list[str], expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alike in a folder, in the Hub's list, and in its cache where the Hub cannot be reached."""
    for name in files:
        (tmp_path / name).write_text("")
    assert is_adapter(tmp_path) is expected
    hub(monkeypatch, files, AssertionError("nothing is downloaded"))
    assert is_adapter("someone/name") is expected
    hub(monkeypatch, ConnectionError("reset"), tmp_path)
    assert is_adapter("someone/name") is expected


def test_names_that_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader of models says what is wrong with them."""
    from huggingface_hub import errors

    hub(monkeypatch, AssertionError("asked"), AssertionError("asked"))
    assert not is_adapter(tmp_path / "missing.json")
    hub(monkeypatch, errors.OfflineModeIsEnabled(""), errors.LocalEntryNotFoundError(""))
    assert not is_adapter("someone/name")


def adapter(folder: Path, **settings: Any) -> Path:
    """A LoRA of one matrix, with these settings beside its rank."""
    import torch
    from safetensors.torch import save_file

    config = {"peft_type": "LORA", "r": 1, "lora_alpha": 2, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    name = "base_model.model." + MODULE
    parts = {f"{name}.lora_A.weight": torch.ones(1, 2), f"{name}.lora_B.weight": torch.ones(2, 1)}
    save_file(parts, folder / "adapter_model.safetensors")
    return folder


MODULE = "layers.0." + "a" * 60


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"r": 10**400}, "r is 1000"),
        ({"rank_pattern": {"a": "x"}}, "a is 'x'"),
        ({"rank_pattern": {"a": 0}}, "a is 0"),
        ({"alpha_pattern": {"a": 10**400}}, "a is 1000"),
        ({"alpha_pattern": ["a"]}, "damaged"),
        ({"rank_pattern": {"(": 2}}, "no regex"),
    ],
)
def test_numbers_that_are_none_are_refused(
    settings: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=says):
        open_adapter(adapter(tmp_path, **settings))


def test_regexes_of_its_config_have_an_end(tmp_path: Path) -> None:
    """Python's `re` would try each of 2 ** 60 ways to read sixty letters."""
    pattern = {"(a|aa)+!": 2}
    with pytest.raises(ValueError, match="retry-limit"):
        open_adapter(adapter(tmp_path, rank_pattern=pattern)).scaling(MODULE)
    fits = {"layers.1.*": 3, "^layers.0.a+": 4}
    assert 0.5 == open_adapter(adapter(tmp_path, rank_pattern=fits)).scaling(MODULE)
