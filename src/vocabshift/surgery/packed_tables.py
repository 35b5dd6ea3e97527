"""The tables of a language pack: which rows of a model its base has, and how the others are stored.

Owns the comparison of bytes, by sha256 of whole tensors and 128 bits of blake2b for each row. All
rows of a table are stored or, where that is smaller, those that the base lacks and a map. Nothing
is rounded. Memory: 16 MiB blocks, and a hash for each row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.models.shard_writer import NewTensor
from vocabshift.models.shards import Shard, StoredTensor
from vocabshift.models.tables import Table
from vocabshift.progress import Progress
from vocabshift.surgery.pack_manifest import Source

Place = tuple[Shard, StoredTensor]
Key = tuple[int, int, int, int]

MAP = "I32"
"""dtype of a map."""

_BLOCK = 16 << 20


@dataclass(frozen=True, eq=False)
class PackedTable:
    """A table of the model that the base does not have as it is."""

    table: Table
    place: Place
    base: Place | None  # the table that rows are kept from
    row_map: npt.NDArray[np.int32]  # of each row: the base's, or -1

    @property
    def n_bytes(self) -> int:
        """Of all rows."""
        return self.place[1].stop - self.place[1].start

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return self.n_bytes // max(len(self.row_map), 1)

    @property
    def n_lacking(self) -> int:
        """Rows that the base lacks."""
        return int((self.row_map < 0).sum())

    @property
    def is_whole(self) -> bool:
        """Whether all rows are stored, because a map would save nothing."""
        return self.base is None or self._n_mapped >= self.n_bytes

    @property
    def n_stored(self) -> int:
        """Bytes in the pack."""
        return self.n_bytes if self.is_whole else self._n_mapped

    @property
    def _n_mapped(self) -> int:
        return self.width * self.n_lacking + self.row_map.nbytes

    @property
    def source(self) -> Source:
        """Where the rows are found when the pack is applied."""
        name = self.table.names[0]
        if self.is_whole or self.base is None:
            return Source(own=name)
        return Source(self.base[1].name, f"{name}:rows", f"{name}:map")

    def tensors(self) -> Iterator[NewTensor]:
        """What the pack holds of the table."""
        (shard, stored), source = self.place, self.source
        assert source.own is not None
        if source.map is None:
            whole = file_blocks(shard.file, stored.start, stored.stop)
            yield NewTensor(source.own, stored.dtype, stored.shape, self.n_bytes, whole)
            return
        plain = memoryview(self.row_map.astype("<i4").tobytes())
        yield NewTensor(source.map, MAP, self.row_map.shape, len(plain), lambda: [plain])
        lacking = np.flatnonzero(self.row_map < 0)

        def rows() -> Iterator[memoryview]:
            for run in np.split(lacking, np.flatnonzero(np.diff(lacking) != 1) + 1):
                if len(run):
                    first, end = (stored.start + int(i) * self.width for i in (run[0], run[-1] + 1))
                    yield from file_blocks(shard.file, first, end)()

        shape = (self.n_lacking, *stored.shape[1:])
        yield NewTensor(source.own, stored.dtype, shape, self.width * self.n_lacking, rows)

    def about(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "name": self.table.names[0],
            "called": self.table.called,
            "rows": len(self.row_map),
            "rows_of_base": 0 if self.is_whole else len(self.row_map) - self.n_lacking,
            "n_bytes": self.n_bytes,
            "bytes_in_pack": self.n_stored,
        }


def pack_table(place: Place, table: Table, candidates: Iterable[Place]) -> PackedTable:
    """The table with the rows that one of the candidates has: that which has the most of them."""
    rows = _hash_rows(place)
    best = PackedTable(table, place, None, np.full(len(rows), -1, dtype=np.int32))
    for candidate in candidates:
        if _kind(candidate) != _kind(place):
            continue
        theirs = _hash_rows(candidate)
        first = {digest: row for row, digest in reversed([*enumerate(theirs)])}
        row_map = (
            row if row < len(theirs) and theirs[row] == digest else first.get(digest, -1)
            for row, digest in enumerate(rows)
        )
        found = np.fromiter(row_map, dtype=np.int32, count=len(rows))
        best = min(best, PackedTable(table, place, candidate, found), key=lambda it: it.n_lacking)
    return best


def hash_tensors(
    places: Iterable[Place], progress: Progress | None, phase: str, known: dict[Key, str]
) -> None:
    """Add sha256 of the bytes of tensors to `known`, by `key_of`; progress is in bytes."""
    wanted = {key_of(place): place[0].file for place in places}
    for key in known.keys() & wanted.keys():
        del wanted[key]
    total, done = sum(stop - start for _, _, start, stop in wanted), 0
    with ThreadPoolExecutor() as pool:
        hashes = pool.map(lambda key: sha256_of(wanted[key], key[2], key[3]), wanted)
        for key, digest in zip(wanted, hashes, strict=True):
            known[key] = digest
            done += key[3] - key[2]
            if progress is not None:
                progress(phase, done, total)


def key_of(place: Place) -> Key:
    """The same for the same bytes of a file under another name (a hard link)."""
    at = place[0].file.stat()
    return at.st_dev, at.st_ino, place[1].start, place[1].stop


def sha256_of(file: Path, start: int = 0, stop: int | None = None) -> str:
    """Of the bytes of a file from `start` to `stop`."""
    digest = hashlib.sha256()
    for block in file_blocks(file, start, file.stat().st_size if stop is None else stop)():
        digest.update(block)
    return digest.hexdigest()


def file_blocks(file: Path, start: int, stop: int) -> Callable[[], Iterator[memoryview]]:
    """Bytes of a file, a block at a time, when they are asked for."""

    def blocks() -> Iterator[memoryview]:
        with file.open("rb", buffering=0) as stream:
            stream.seek(start)
            left = stop - start
            while left:
                data = stream.read(min(left, _BLOCK))
                if not data:
                    raise ValueError(f"{file} became shorter while it was read")
                yield memoryview(data)
                left -= len(data)

    return blocks


def merged_rows(
    row_map: npt.NDArray[np.int32], width: int, base: tuple[Path, int], own: tuple[Path, int]
) -> Callable[[], Iterator[memoryview]]:
    """Rows of `width` bytes: row `row_map[i]` of the base, or the next own one where that is -1.

    `base`, `own`: file, and the byte in it at which the rows begin.
    """

    def blocks() -> Iterator[memoryview]:
        length = max(1, _BLOCK // max(width, 1))
        n_own = 0
        with base[0].open("rb", buffering=0) as theirs, own[0].open("rb", buffering=0) as ours:
            for first in range(0, len(row_map), length):
                part = row_map[first : first + length]
                numbers = np.where(part < 0, 0, part).astype(np.int64)
                is_own = part < 0
                numbers[is_own] = n_own + np.arange(int(is_own.sum()))
                n_own += int(is_own.sum())
                block = memoryview(bytearray(len(part) * width))
                breaks = (np.diff(numbers) != 1) | (is_own[1:] != is_own[:-1])
                edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(part)]
                for a, b in pairwise(edges):
                    stream, start = (ours, own[1]) if is_own[a] else (theirs, base[1])
                    stream.seek(start + int(numbers[a]) * width)
                    _fill(stream, block[a * width : b * width])
                yield block

    return blocks


def _fill(stream: Any, target: memoryview) -> None:
    while len(target):
        n_read = stream.readinto(target)
        if not n_read:
            raise ValueError(f"{stream.name} became shorter while it was read")
        target = target[n_read:]


def _kind(place: Place) -> tuple[Any, ...]:
    return place[1].dtype, place[1].shape[1:]


def _hash_rows(place: Place) -> list[bytes]:
    shard, stored = place
    n_rows = stored.shape[0]
    width = (stored.stop - stored.start) // max(n_rows, 1)
    found: list[bytes] = []
    step = max(1, _BLOCK // max(width, 1))
    with shard.file.open("rb", buffering=0) as stream:
        stream.seek(stored.start)
        for first in range(0, n_rows, step):
            block = memoryview(bytearray(min(step, n_rows - first) * width))
            _fill(stream, block)
            found += (
                hashlib.blake2b(block[start : start + width], digest_size=16).digest()
                for start in range(0, len(block), max(width, 1))
            )
    return found
