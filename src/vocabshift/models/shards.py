"""A saved model's safetensors shards: the position of each tensor, from their headers alone.

Owns the format (https://github.com/huggingface/safetensors: 8 bytes header length, a JSON header,
then the tensors one after the other) and the index of sharded models. Damaged files are refused
before anything is mapped. Knows nothing of what the tensors mean.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
_MAX_HEADER = 100 << 20  # the format's own limit
_MAX_AXES = 64  # NumPy's and torch's
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I8": 1, "U8": 1, "BOOL": 1}
FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""dtype in a header -> name in torch, of those that rows can be averaged in."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a shard."""

    name: str
    dtype: str  # as the header spells it
    shape: tuple[int, ...]
    start: int  # in bytes, from the beginning of the file
    stop: int  # exclusive


@dataclass(frozen=True)
class Shard:
    """One file; its tensors in file order, without gaps."""

    file: Path
    tensors: tuple[StoredTensor, ...]
    metadata: Mapping[str, str]

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.file.stat().st_size


@dataclass(frozen=True)
class Checkpoint:
    """All shards of a model."""

    folder: Path
    shards: tuple[Shard, ...]
    index: Mapping[str, Any] | None  # of a model in several shards

    @cached_property
    def tensors(self) -> dict[str, tuple[Shard, StoredTensor]]:
        """Every tensor by its name."""
        return {tensor.name: (shard, tensor) for shard in self.shards for tensor in shard.tensors}


def open_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint of a folder, or None where it holds no safetensors weights.

    ValueError for a shard that is missing, truncated or damaged, or not as the index says.
    """
    index_file, single = folder / INDEX, folder / WEIGHTS
    if single.exists():  # before an index, where both are there: so transformers reads them
        return Checkpoint(folder, (_read_shard(single, folder),), None)
    if not index_file.exists():
        return None
    try:
        index = json.loads(index_file.read_bytes())
        places = {str(name): str(file) for name, file in index["weight_map"].items()}
        dict(index.get("metadata") or {})
        if not places:
            raise ValueError("it names no weights")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(folder, f"{INDEX} is damaged ({error})") from None
    shards = []
    for name in sorted(set(places.values())):
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise _damaged(
                folder, f"{INDEX} names {name!r}, which is no safetensors file in this folder"
            )
        if not (folder / name).exists():
            raise _damaged(folder, f"the shard {name}, which {INDEX} names, is missing")
        shards.append(_read_shard(folder / name, folder))
    checkpoint = Checkpoint(folder, tuple(shards), index)
    for tensor, file in places.items():
        place = checkpoint.tensors.get(tensor)
        if place is None or place[0].file.name != file:
            raise _damaged(folder, f"{file} does not hold {tensor}, which {INDEX} says is in it")
    return checkpoint


def header_bytes(
    tensors: Iterable[tuple[StoredTensor, tuple[int, ...], int]], metadata: Mapping[str, str]
) -> bytes:
    """The header of a shard with these (tensor, new shape, new size in bytes), in this order."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for tensor, shape, size in tensors:
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(shape),
            "data_offsets": [place, place + size],
        }
        place += size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin aligned
    return len(text).to_bytes(8, "little") + text


def _read_shard(file: Path, folder: Path) -> Shard:
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= min(_MAX_HEADER, size - 8):
            raise _damaged(folder, f"{file.name} is no safetensors file, or a truncated one")
        try:
            header = json.loads(stream.read(length))
            metadata = header.pop("__metadata__", None) or {}
            texts = [*header, *metadata, *metadata.values()]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("its metadata is not text alone")
            "".join(texts).encode()  # a lone surrogate could not be written again
            tensors = [_tensor(name, entry, 8 + length) for name, entry in header.items()]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(folder, f"{file.name} has a damaged header ({error})") from None
    tensors.sort(key=lambda tensor: (tensor.start, tensor.stop))
    place = 8 + length
    for tensor in tensors:
        if tensor.start != place or tensor.stop < place:
            raise _damaged(folder, f"{file.name} has a damaged header (at {tensor.name})")
        place = tensor.stop
    if place != size:
        raise _damaged(
            folder, f"{file.name} has {size} bytes, and its header speaks of {place}: truncated?"
        )
    return Shard(file, tuple(tensors), metadata)


def _tensor(name: str, entry: Mapping[str, Any], start: int) -> StoredTensor:
    shape = tuple(operator.index(length) for length in entry["shape"])  # no text, no fraction
    first, last = map(operator.index, entry["data_offsets"])
    dtype = str(entry["dtype"])
    if min((0, *shape)) < 0 or first < 0:
        raise ValueError(f"{name} has a negative size")
    if len(shape) > _MAX_AXES or max((0, *shape)) >= 1 << 63:  # their product would take minutes
        raise ValueError(f"{name} has a shape that no array can have")
    if dtype in _SIZES and last - first != math.prod(shape) * _SIZES[dtype]:
        raise ValueError(f"{name} takes {last - first} bytes, which its shape contradicts")
    return StoredTensor(name, dtype, shape, start + first, start + last)


def _damaged(folder: Path, reason: str) -> ValueError:
    return ValueError(f"the model {folder} cannot be loaded: {reason}")


def stored_dtypes(folder: Path) -> tuple[str, dict[str, str]]:
    """The dtype of most stored numbers, float32 if it cannot be determined; tensors of others."""
    checkpoint = open_checkpoint(folder)
    stored = {} if checkpoint is None else {n: s for n, (_, s) in checkpoint.tensors.items()}
    sizes: dict[str, int] = {}
    for each in stored.values():
        sizes[each.dtype] = sizes.get(each.dtype, 0) + each.stop - each.start
    most = max(sizes, key=lambda name: sizes[name], default="F32")
    others = {
        name: FLOATS[each.dtype]
        for name, each in stored.items()
        if each.dtype != most and each.dtype in FLOATS
    }
    return FLOATS.get(most, "float32"), others


def lacking_layers(folder: Path, source: Path) -> list[str]:
    """Numbered layers of the model in `source` that the one in `folder` lacks.

    Such as layers for multi-token prediction, which transformers does not load. Layers count as the
    same if the last three parts of their names agree, for it may change what is in front.
    """
    before, after = open_checkpoint(source), open_checkpoint(folder)
    if before is None or after is None:
        return []
    known = {_layer_of(name) for name in after.tensors}
    found: set[str] = set()
    for layer in map(_layer_of, before.tensors):
        ending = ".".join(layer.split(".")[-3:])
        if layer and not any(each.endswith(ending) for each in known):
            found.add(layer)
    return sorted(found)


def _layer_of(name: str) -> str:
    """`model.layers.2` of `model.layers.2.mlp.up_proj.weight`; "" where there is no number."""
    numbered = re.match(r"(.*?\.\d+)\.", name)
    return numbered[1] if numbered else ""
