"""Checkpoints in safetensors whose index or headers do not say what is there: refused, unread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from vocabshift.models.shards import (
    INDEX,
    WEIGHTS,
    lacking_layers,
    open_checkpoint,
    stored_dtypes,
)

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def sharded(folder: Path, places: dict[str, str]) -> Path:
    """Two shards with `a` and `b`, and an index that says where tensors are."""
    save_file({"a": np.zeros((2, 3), np.float32)}, folder / FIRST)
    save_file({"b": np.ones(4, np.float32)}, folder / SECOND)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def with_header(folder: Path, header: dict[str, Any], n_bytes: int) -> Path:
    text = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + bytes(n_bytes))
    return folder


def entry(start: int, stop: int, *shape: int) -> dict[str, Any]:
    return {"dtype": "F32", "shape": list(shape), "data_offsets": [start, stop]}


def test_shards_are_read(tmp_path: Path) -> None:
    found = open_checkpoint(sharded(tmp_path, {"a": FIRST, "b": SECOND}))
    assert found is not None
    assert {name: place[1].shape for name, place in found.tensors.items()} == {
        "a": (2, 3),
        "b": (4,),
    }


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({}, "it names no weights"),
        ({"a": FIRST, "b": FIRST}, f"{FIRST} does not hold b"),
        ({"a": FIRST, "c": SECOND}, f"{SECOND} does not hold c"),
        ({"a": "model-3.safetensors"}, "the shard model-3.safetensors, which"),
        ({"a": "../a.safetensors"}, "is no safetensors file in this folder"),
        ({"a": "a.bin"}, "is no safetensors file in this folder"),
    ],
)
def test_an_index_that_is_wrong(tmp_path: Path, places: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_checkpoint(sharded(tmp_path, places))


@pytest.mark.parametrize(
    ("header", "n_bytes", "message"),
    [
        ({"a": entry(0, 8, 2), "b": entry(4, 12, 2)}, 12, r"damaged header \(at b\)"),  # overlap
        ({"a": entry(4, 12, 2)}, 12, r"damaged header \(at a\)"),  # a gap
        ({"a": entry(-8, 0, 2)}, 0, "a has a negative size"),
        ({"a": entry(0, 8, -2)}, 8, "a has a negative size"),
        ({"a": entry(0, 8, 3)}, 8, "a takes 8 bytes, which its shape contradicts"),
        ({"a": entry(0, 8, 2)}, 4, "its header speaks of"),
        ({"a": entry(0, 0, *[0] * 70)}, 0, "a shape that no array can have"),
        ({"__metadata__": {"format": 5}}, 0, "its metadata is not text alone"),
        ({"__metadata__": {"x": float("nan")}}, 0, "its metadata is not text alone"),
        ({"__metadata__": {"x": None}}, 0, "its metadata is not text alone"),
        ({"__metadata__": [["format", "pt"]]}, 0, f"{WEIGHTS} has a damaged header"),
        ({"__metadata__": {"\ud800": "x"}}, 0, f"{WEIGHTS} has a damaged header .*surrogates"),
        ({"__metadata__": {"x": "\ud800"}}, 0, f"{WEIGHTS} has a damaged header .*surrogates"),
        ({"\ud800": entry(0, 8, 2)}, 8, f"{WEIGHTS} has a damaged header .*surrogates"),
        ({"a": {"dtype": "F32", "shape": [2.5], "data_offsets": [0, 8]}}, 8, "damaged header"),
    ],
)
def test_a_header_that_is_wrong(
    tmp_path: Path, header: dict[str, Any], n_bytes: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        open_checkpoint(with_header(tmp_path, header, n_bytes))


def test_layers_that_are_lacking(tmp_path: Path) -> None:
    """A layer for multi-token prediction; not those that are only named otherwise."""
    for name, tensors in {
        "source": ("h.0.w", "model.layers.0.w", "model.layers.1.w", "model.layers.1.b", "head.w"),
        "folder": ("transformer.h.0.w", "model.layers.0.w"),
        "renamed": ("text.model.layers.0.w", "text.model.layers.1.w", "transformer.h.0.w"),
    }.items():
        (tmp_path / name).mkdir()
        zeros = {tensor: np.zeros(2, np.float32) for tensor in tensors}
        save_file(zeros, tmp_path / name / WEIGHTS)
    source = tmp_path / "source"
    assert ["model.layers.1"] == lacking_layers(tmp_path / "folder", source)
    assert [] == lacking_layers(tmp_path / "renamed", source)
    assert [] == lacking_layers(source, source)
    assert [] == lacking_layers(tmp_path, source)  # an adapter alone: no weights


def test_dtypes_of_most_numbers_and_of_others(tmp_path: Path) -> None:
    save_file(
        {"a": np.zeros(9, np.float16), "b": np.zeros(2, np.float32), "c": np.zeros(2, np.int64)},
        tmp_path / WEIGHTS,
    )
    assert ("float16", {"b": "float32"}) == stored_dtypes(tmp_path)
    assert ("float32", {}) == stored_dtypes(tmp_path / "absent")
