"""Adapter or model: decided by the files of a folder, of the Hub, or of its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vocabshift.models.adapter import is_adapter

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
