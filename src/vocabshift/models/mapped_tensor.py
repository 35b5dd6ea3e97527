"""Rows of files: tensors over a memory-mapped file to read from, and rows written by their id.

Owns the mapping and the release of its pages. With it, code for rows of tensors in memory works
unchanged on shards of any size: `index_select` reads from a file, `FileRows.index_copy_` writes to
one. It subclasses torch's tensor, so it imports torch at module level; import this module only
inside functions. Knows nothing of safetensors or tokens.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import torch

from vocabshift.models.shard_writer import read_at, write_all

RELEASE_EVERY = 32 << 20
"""Bytes that operations may touch before the pages of a mapping are given back."""


class FileMapping:
    """A whole file in memory, page by page as it is touched. Nothing is ever written back."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as stream:
            # Subtle: private and not read-only, because torch warns of memory that is.
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
            self._descriptor = os.dup(stream.fileno())
        weakref.finalize(self, os.close, self._descriptor)
        self._address = torch.frombuffer(self._map, dtype=torch.uint8).data_ptr()
        self._touched = 0

    def read_rows(self, table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Rows of a contiguous matrix in the file, read and not mapped.

        Subtle: a row touched in a mapping brings megabytes of its neighbours into memory.
        """
        rows = torch.empty((len(ids), table.shape[1]), dtype=table.dtype)
        width = table.shape[1] * table.element_size()
        start = table.data_ptr() - self._address
        plain: Any = rows.view(torch.uint8).numpy()
        data = memoryview(plain).cast("B")
        wanted = ids.tolist()
        edges = (ids.diff() != 1).nonzero().squeeze(1).add(1).tolist()
        for first, end in zip([0, *edges], [*edges, len(wanted)], strict=True):
            if not 0 <= wanted[first] <= wanted[end - 1] < len(table):
                raise IndexError(f"row {wanted[first]} of a table of {len(table)}")
            part, place = data[first * width : end * width], start + wanted[first] * width
            while len(part):
                done = self._read_into(part, place)
                if done == 0:
                    raise ValueError("a shard became shorter while it was read")
                part, place = part[done:], place + done
        return rows

    def _read_into(self, part: memoryview, place: int) -> int:
        if sys.platform == "linux":
            return os.preadv(self._descriptor, [part], place)
        data = read_at(self._descriptor, len(part), place)
        part[: len(data)] = data
        return len(data)

    def tensor(self, dtype: torch.dtype, shape: tuple[int, ...], start: int) -> torch.Tensor:
        """The tensor that begins at byte `start`; bytes read through it count as touched."""
        count = math.prod(shape)
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        plain = torch.frombuffer(self._map, dtype=dtype, count=count, offset=start)
        return MappedTensor.over(plain.view(shape), self)

    def touched(self, n_bytes: int) -> None:
        """Count bytes; past `RELEASE_EVERY` the mapping's pages go back to the system."""
        self._touched += n_bytes
        if self._touched >= RELEASE_EVERY:
            self._touched = 0
            if sys.platform != "win32":
                self._map.madvise(mmap.MADV_DONTNEED)


class MappedTensor(torch.Tensor):
    """A tensor over a `FileMapping`; results of operations that own their memory are plain."""

    mapping: FileMapping

    @staticmethod
    def over(plain: torch.Tensor, mapping: FileMapping) -> torch.Tensor:
        """`plain`, which lies in `mapping`, as a tensor that gives pages back."""
        mapped = plain.as_subclass(MappedTensor)
        mapped.mapping = mapping
        return mapped

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do it as plain tensors do, then give pages back where much was touched."""
        mapped = [arg for arg in args if isinstance(arg, MappedTensor)]
        with torch._C.DisableTorchFunctionSubclass():
            if func is torch.Tensor.index_select and len(args) == 3 and len(args[2]):
                table, dim, ids = args
                if dim == 0 and table.dim() == 2 and table.is_contiguous():
                    return table.mapping.read_rows(table, ids)
            result = func(*args, **(kwargs or {}))
            if not isinstance(result, torch.Tensor) or not mapped:
                return result
            plain = result.as_subclass(torch.Tensor)
            if not plain.numel():
                return plain
            address = plain.untyped_storage().data_ptr()
            for arg in mapped:
                if arg.untyped_storage().data_ptr() == address:
                    return MappedTensor.over(plain, arg.mapping)  # a view
                arg.mapping.touched(plain.numel() * plain.element_size())
            return plain


class FileRows:
    """The rows of a table in a file that is being written, as far as `new_matrix` needs them."""

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor = descriptor
        self._start = start  # byte of row 0

    def index_copy_(self, dim: int, ids: torch.Tensor, rows: torch.Tensor) -> None:
        """Write row i of `rows` as row ids[i]; OSError where the disk is full."""
        assert dim == 0
        plain = rows.contiguous()
        data: Any = plain.view(torch.uint8).numpy()
        data = memoryview(data).cast("B")
        width = plain.shape[1] * plain.element_size()
        edges = (ids.diff() != 1).nonzero().squeeze(1).add(1).tolist()
        starts = [0, *edges] if len(ids) else []
        for first, end in zip(starts, [*edges, len(ids)], strict=False):
            offset = self._start + int(ids[first]) * width
            write_all(self._descriptor, data[first * width : end * width], offset)
