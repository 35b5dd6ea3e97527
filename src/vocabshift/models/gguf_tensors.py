"""The tensors of a GGUF file that is written from a folder: sizes, values and the file itself.

Owns the values as llama.cpp stores them (`gguf_weights` has the way back). Weights are read and
written in blocks of rows, so memory does not grow with the model. The package gguf quantizes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vocabshift.models.gguf_weights import Expected, cast, gguf_package
from vocabshift.models.shard_writer import finish, hand_over, open_new, reserve, write_all
from vocabshift.models.shards import StoredTensor
from vocabshift.progress import PhaseProgress

READABLE = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
"""dtype in a shard -> numpy's."""
_CASTS: dict[str, Any] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_MOST_SCALE = 65504.0  # Q8_0 keeps 1/127 of a block's largest value in 16 bits
_BLOCK_VALUES = 1 << 22

Blocks = Callable[[], Iterable[memoryview]]
"""Gives the bytes of a tensor, some rows at a time."""


class NewTensor(NamedTuple):
    """A tensor of the file."""

    name: str
    kind: str  # of its values
    n_bytes: int
    expected: Expected
    file: Path | None  # that holds it
    stored: StoredTensor | None  # None: `values` are the tensor
    values: tuple[float, ...] = ()


def kind_of(shape: tuple[int, ...], wanted: str) -> str:
    """What llama.cpp can compute with: vectors have 32 bits, and Q8_0 has blocks of 32 values."""
    if len(shape) == 1:
        return "F32"
    block, _ = block_of(wanted)
    return wanted if shape[-1] % block == 0 else "F16"


def block_of(kind: str) -> tuple[int, int]:
    """Values and bytes of a block."""
    gguf = gguf_package()
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    return int(block), int(size)


def new_tensor(
    name: str, kind: str, own: Expected, file: Path | None, stored: StoredTensor | None
) -> NewTensor:
    """The tensor `name` of the file, of values of this kind."""
    block, size = block_of(kind)
    return NewTensor(name, kind, math.prod(own.shape) // block * size, own, file, stored)


def write_file(
    target: Path,
    header: bytes,
    tensors: Sequence[tuple[int, Blocks]],
    *,
    n_bytes: int,
    progress: PhaseProgress | None,
) -> None:
    """Write a GGUF file: the header, and each tensor from the byte where it begins.

    n_bytes: of the whole file. `progress` is called with bytes of it.
    """
    out = open_new(target)
    try:
        reserve(out, n_bytes)
        os.ftruncate(out, n_bytes)  # the gaps between tensors are zeros
        write_all(out, memoryview(header), 0)
        for start, blocks in tensors:
            place = start
            for block in blocks():
                write_all(out, block, place)
                place += len(block)
                if progress is not None:
                    progress(place, n_bytes)
            hand_over(out, start, place - start)
        finish(out)
    finally:
        os.close(out)


def blocks_of(tensor: NewTensor) -> Iterator[memoryview]:
    """The tensor in llama.cpp's order of rows, some at a time, as bytes."""
    expected, stored = tensor.expected, tensor.stored
    if stored is None or tensor.file is None:
        yield np.array(tensor.values, "<f4").data.cast("B")
        return
    n_rows = expected.shape[0]
    n_values = math.prod(expected.shape[1:])
    row_bytes = (stored.stop - stored.start) // n_rows
    step, order = max(1, _BLOCK_VALUES // n_values), None
    if expected.n_heads:  # rows are reordered within their head
        step = n_rows // expected.n_heads
        order = np.arange(step).reshape(2, -1).T.ravel()
    for first in range(0, n_rows, step):
        count = min(step, n_rows - first)
        place = stored.start + first * row_bytes
        values = np.fromfile(tensor.file, READABLE[stored.dtype], count * n_values, offset=place)
        if len(values) != count * n_values:
            raise ValueError("the folder changed while it was read; convert it again")
        rows = _floats(values, stored.dtype).reshape(count, -1)
        if not np.isfinite(rows).all():
            raise ValueError(
                f"the tensor {stored.name!r} holds values that are no numbers, in the rows from "
                f"byte {place} of {tensor.file}; the model is damaged"
            )
        yield _stored(rows if order is None else rows[order], tensor)


def _floats(values: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    if dtype == "BF16":
        return (values.astype("<u4") << 16).view("<f4")
    with np.errstate(over="ignore"):
        return values.astype("<f4")


def _stored(rows: NDArray[np.float32], tensor: NewTensor) -> memoryview:
    if tensor.expected.shift:
        rows = rows - np.float32(tensor.expected.shift)
    if tensor.kind in _CASTS:
        return cast(rows, _CASTS[tensor.kind], tensor.expected.name).data.cast("B")
    if float(np.abs(rows).max()) / 127 > _MOST_SCALE:
        raise ValueError(
            f"the tensor {tensor.expected.name!r} has values that {tensor.kind} cannot hold; "
            "use F32"
        )
    gguf = gguf_package()
    kind = gguf.GGMLQuantizationType[tensor.kind]
    quantized: NDArray[np.uint8] = gguf.quants.quantize(np.ascontiguousarray(rows), kind)
    return np.ascontiguousarray(quantized).data.cast("B")
