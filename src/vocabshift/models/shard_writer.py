"""Shards of a model: written again with other tables, all other bytes as they were, or anew.

Owns the copying (a hard link, or the kernel's copy, which shares blocks if the file system supports
it), the layout of a changed shard, and which tensors of a new model go into which shard. The caller
provides the rows.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vocabshift.models.shards import INDEX, WEIGHTS, Shard, StoredTensor, header_bytes

_BLOCK = 16 << 20  # bytes copied at a time
_PLAIN = {"format": "pt"}  # metadata without which transformers reads no shard
_BINARY = getattr(os, "O_BINARY", 0)  # Windows ends lines otherwise
_UNDER_WAY = 8  # blocks that the disk may lag before their pages are given back

WriteRows = Callable[[int, int], None]
"""(file descriptor, byte at which the table begins): writes the whole table there."""


@dataclass(frozen=True)
class NewTable:
    """What replaces a stored tensor."""

    shape: tuple[int, ...]
    n_bytes: int
    write: WriteRows


@dataclass(frozen=True)
class Layout:
    """A changed shard before it is written."""

    header: bytes
    sizes: tuple[int, ...]  # of its tensors, in bytes

    @property
    def n_bytes(self) -> int:
        """Size of the new file."""
        return len(self.header) + sum(self.sizes)


def layout(shard: Shard, changed: Mapping[str, NewTable]) -> Layout:
    """Header and sizes of the shard under its new tables."""
    entries = []
    for tensor in shard.tensors:
        new = changed.get(tensor.name)
        shape, size = (tensor.shape, _size(tensor)) if new is None else (new.shape, new.n_bytes)
        entries.append((tensor, shape, size))
    header = header_bytes(entries, shard.metadata)
    return Layout(header, tuple(size for _, _, size in entries))


def write_shard(shard: Shard, changed: Mapping[str, NewTable], target: Path) -> None:
    """Write the shard with its new tables; its other tensors are copied byte for byte."""
    plan = layout(shard, changed)
    source = os.open(shard.file, os.O_RDONLY | _BINARY)
    out = open_new(target)
    try:
        reserve(out, plan.n_bytes)
        write_all(out, memoryview(plan.header), 0)
        place = len(plan.header)
        run: tuple[int, int, int] | None = None  # source start, target start, length
        for tensor, size in zip(shard.tensors, plan.sizes, strict=True):
            new = changed.get(tensor.name)
            if new is None:
                first, to, length = run or (tensor.start, place, 0)
                run = (first, to, length + size)
            else:
                if run:
                    copy_bytes(source, out, *run)
                run = None
                new.write(out, place)
                hand_over(out, place, size)
            place += size
        if run:
            copy_bytes(source, out, *run)
        finish(out)
    finally:
        os.close(source)
        os.close(out)


@dataclass(frozen=True)
class NewTensor:
    """A tensor of a new model; its bytes are asked for when their turn comes."""

    name: str
    dtype: str  # as the header spells it
    shape: tuple[int, ...]
    n_bytes: int
    blocks: Callable[[], Iterable[memoryview]]


def write_new_shards(tensors: Sequence[NewTensor], folder: Path, *, max_bytes: int) -> int:
    """Write a model into shards of at most `max_bytes`, and their index; the bytes of all shards.

    One shard has no index. A tensor that is larger has a shard of its own.
    """
    shards: list[list[NewTensor]] = [[]]
    for tensor in tensors:
        if shards[-1] and sum(own.n_bytes for own in shards[-1]) + tensor.n_bytes > max_bytes:
            shards.append([])
        shards[-1].append(tensor)
    if len(shards) == 1:
        return write_new_shard(shards[0], folder / WEIGHTS)
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    written = sum(
        write_new_shard(shard, folder / name) for shard, name in zip(shards, names, strict=True)
    )
    places = {own.name: name for shard, name in zip(shards, names, strict=True) for own in shard}
    index = {
        "metadata": {"total_size": sum(own.n_bytes for own in tensors)},
        "weight_map": dict(sorted(places.items())),
    }
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return written


def write_new_shard(
    tensors: Sequence[NewTensor], target: Path, metadata: Mapping[str, str] = _PLAIN
) -> int:
    """Write one file of these tensors, in their order; its size in bytes."""
    entries = [
        (StoredTensor(own.name, own.dtype, own.shape, 0, own.n_bytes), own.shape, own.n_bytes)
        for own in tensors
    ]
    header = header_bytes(entries, metadata)
    place, n_bytes = len(header), len(header) + sum(own.n_bytes for own in tensors)
    out = open_new(target)
    try:
        reserve(out, n_bytes)
        write_all(out, memoryview(header), 0)
        for own in tensors:
            start = place
            for block in own.blocks():
                write_all(out, block, place)
                place += len(block)
            hand_over(out, start, place - start)
        finish(out)
    finally:
        os.close(out)
    if place != n_bytes:
        raise RuntimeError(f"{target.name} has {place} bytes, and its header speaks of {n_bytes}")
    return n_bytes


def copy_file(source: Path, target: Path, *, hard_link: bool = False) -> str:
    """Copy a file, or link it where asked and possible; "linked" or "copied"."""
    real = source.resolve()  # the Hub's cache holds symbolic links to its files
    if hard_link:
        try:
            os.link(real, target)
        except OSError as error:  # another file system, or one without links
            if error.errno == errno.EEXIST:
                raise
        else:
            return "linked"
    size = real.stat().st_size
    descriptor = os.open(real, os.O_RDONLY | _BINARY)
    out = open_new(target)
    try:
        reserve(out, size)
        copy_bytes(descriptor, out, 0, 0, size)
        finish(out)
    finally:
        os.close(descriptor)
        os.close(out)
    return "copied"


def copy_bytes(source: int, target: int, start: int, to: int, length: int) -> None:
    """Copy bytes between two open files; by the kernel alone where it can.

    The disk writes while further blocks are copied, and written pages are released: allocating
    fresh memory for all pages of the output would take longer than the copying.
    """
    begin = to
    by_kernel = True
    while length:
        count = min(length, _BLOCK)
        if sys.platform == "linux" and by_kernel:
            try:
                done = os.copy_file_range(source, target, count, start, to)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                    raise
                by_kernel = False
                continue
        else:
            data = read_at(source, count, start)
            write_all(target, memoryview(data), to)
            done = len(data)
        if done == 0:
            raise ValueError("a shard became shorter while it was copied; copy the model again")
        hand_over(target, to, done)
        if to - begin >= _UNDER_WAY * _BLOCK:
            hand_over(target, to - _UNDER_WAY * _BLOCK, done)
        start, to, length = start + done, to + done, length - done


def open_new(target: Path) -> int:
    """The descriptor of an empty file to write."""
    return os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _BINARY, 0o644)


def read_at(descriptor: int, count: int, start: int) -> bytes:
    """Up to `count` bytes from `start` on; none at the end of the file."""
    if sys.platform != "win32":
        return os.pread(descriptor, count, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, count)


def write_all(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all of `data` at `offset`."""
    while len(data):
        if sys.platform != "win32":
            written = os.pwrite(descriptor, data, offset)
        else:
            os.lseek(descriptor, offset, os.SEEK_SET)
            written = os.write(descriptor, data)
        data, offset = data[written:], offset + written


def hand_over(descriptor: int, start: int, length: int) -> None:
    """Start writing these bytes to disk, and release the pages already written.

    `length` 0: to the end. An advice (of Linux, POSIX_FADV_DONTNEED does both): no promise.
    """
    if sys.platform == "linux":
        os.posix_fadvise(descriptor, start, length, os.POSIX_FADV_DONTNEED)


def finish(descriptor: int) -> None:
    """Wait until the file is on the disk: its new name must not be there before its bytes."""
    os.fsync(descriptor)
    hand_over(descriptor, 0, 0)


def reserve(descriptor: int, n_bytes: int) -> None:
    """Have the disk set the bytes aside, so that it is full before anything is written."""
    if not n_bytes or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, n_bytes)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def _size(tensor: StoredTensor) -> int:
    return tensor.stop - tensor.start
