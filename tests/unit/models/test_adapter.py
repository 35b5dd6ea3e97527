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


def adapter(folder: Path, parts: dict[str, Any] | None = None, **settings: Any) -> Path:
    """A LoRA of one matrix, with these settings beside its rank, and with these parts."""
    import torch
    from safetensors.torch import save_file

    config = {"peft_type": "LORA", "r": 1, "lora_alpha": 2, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    parts = {"lora_A.weight": torch.ones(1, 2), "lora_B.weight": torch.ones(2, 1), **(parts or {})}
    tensors = {f"base_model.model.{MODULE}.{name}": part for name, part in parts.items()}
    save_file(tensors, folder / "adapter_model.safetensors")
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
    folder = adapter(tmp_path, of_rank(4, 4), rank_pattern=fits)
    assert 0.5 == open_adapter(folder).scaling(MODULE)


def of_rank(rank_of_a: int, rank_of_b: int) -> dict[str, Any]:
    import torch

    return {"lora_A.weight": torch.ones(rank_of_a, 2), "lora_B.weight": torch.ones(2, rank_of_b)}


@pytest.mark.parametrize(
    ("ranks", "settings"),
    [((2, 2), {}), ((1, 2), {}), ((0, 0), {}), ((1, 1), {"rank_pattern": {"a+": 2}})],
)
def test_ranks_that_contradict_each_other(
    ranks: tuple[int, int], settings: dict[str, Any], tmp_path: Path
) -> None:
    """The scaling would be that of another rank; an adapter that is only moved may have it."""
    folder = adapter(tmp_path, of_rank(*ranks), **settings)
    with pytest.raises(ValueError, match=r"does not fit its adapter_config\.json: A and B of"):
        open_adapter(folder)
    assert [MODULE] == [*open_adapter(folder, has_to_merge=False).modules]


@pytest.mark.parametrize(
    ("name", "shape", "kind", "says"),
    [
        ("lora_A.weight", (2,), "float32", r"lora_A.weight is float32 of shape \[2\]"),
        ("lora_B.weight", (2,), "float32", r"lora_B.weight is float32 of shape \[2\]"),
        ("weight", (), "float32", r"weight is float32 of shape \[\]"),
        ("token_adapter.trainable_tokens_delta", (3,), "float32", r"delta is .* of shape \[3\]"),
        ("lora_A.weight", (1, 2), "complex64", "is complex64"),
        ("lora_A.weight", (1, 2), "bool", "is bool"),
        ("lora_A.weight", (1, 2), "int8", "is int8"),
        ("lora_A.weight", (1, 2), "float8_e4m3fn", "is float8_e4m3fn"),
        ("lora_embedding_A", (1, 2), "float32", "only one of A and B"),
    ],
)
def test_tensors_that_no_lora_has(
    name: str, shape: tuple[int, ...], kind: str, says: str, tmp_path: Path
) -> None:
    import torch

    folder = adapter(tmp_path, {name: torch.zeros(shape).to(getattr(torch, kind))})
    for has_to_merge in (True, False):
        with pytest.raises(ValueError, match=f"adapter_model.safetensors is damaged: .*{says}"):
            open_adapter(folder, has_to_merge=has_to_merge)


def test_a_module_is_a_layer_or_a_table(tmp_path: Path) -> None:
    import torch

    table = {"lora_embedding_A": torch.ones(1, 2), "lora_embedding_B": torch.ones(2, 1)}
    with pytest.raises(ValueError, match="has two kinds of A and B"):
        open_adapter(adapter(tmp_path, table))
