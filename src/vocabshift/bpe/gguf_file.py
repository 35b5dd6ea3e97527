"""GGUF files: the key-value header, read with every length checked against the file's end.

Owns the layout (github.com/ggml-org/ggml, docs/gguf.md; versions 2 and 3, little-endian). Tensors
are never touched. Written here because a vocabulary of 256 thousand tokens takes the gguf package
13 seconds, and one second here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from vocabshift.errors import InvalidTokenizerError

MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?QqdX", strict=False))
"""struct code by GGUF type: u8 i8 u16 i16 u32 i32 f32 bool u64 i64 f64."""
_MAX_KEYS = 1 << 16


def read_metadata(data: bytes, *, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """The metadata of a GGUF file; the values of keys that are not `wanted` are skipped.

    `data` may be a memory map: only the header is read.
    """
    reader = _Reader(data)
    if data[:4] != MAGIC:
        raise InvalidTokenizerError("this is no GGUF file")
    reader.at = 4
    version = reader.scalar("I")
    if version not in (2, 3):
        raise InvalidTokenizerError(f"GGUF version {version} is not read; versions 2 and 3 are")
    _tensor_count, key_count = reader.scalar("Q"), reader.scalar("Q")
    if key_count > _MAX_KEYS:
        raise InvalidTokenizerError(f"the GGUF header claims {key_count} keys; it is damaged")
    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = reader.string()
        value = reader.value(reader.scalar("I"), keep=wanted(key))
        if wanted(key):
            metadata[key] = value
    return metadata


class _Reader:
    """A place in the data; every read checks that so many bytes are left."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)
        self.at = 0

    def take(self, size: int) -> int:
        """Step over `size` bytes and return where they begin."""
        start = self.at
        if size > self.end - start:
            raise InvalidTokenizerError(
                f"the GGUF file is cut short or damaged: {size} bytes are said to follow "
                f"byte {start} of {self.end}"
            )
        self.at = start + size
        return start

    def scalar(self, code: str) -> Any:
        start = self.take(struct.calcsize(code))
        return struct.unpack_from("<" + code, self.data, start)[0]

    def string(self) -> str:
        start = self.take(self.scalar("Q"))
        try:
            return self.data[start : self.at].decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTokenizerError(
                f"the string at byte {start} of the GGUF file is not UTF-8: {error.reason}"
            ) from None

    def value(self, kind: int, *, keep: bool, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY and depth == 0:
            return self.array(keep=keep)
        if kind not in _SCALARS:
            raise InvalidTokenizerError(f"the GGUF file holds a value of unknown type {kind}")
        return self.scalar(_SCALARS[kind])

    def array(self, *, keep: bool) -> list[Any]:
        kind, count = self.scalar("I"), self.scalar("Q")
        if kind == _STRING:
            return self.strings(count)
        if kind not in _SCALARS:
            raise InvalidTokenizerError(f"the GGUF file holds an array of unknown type {kind}")
        code = _SCALARS[kind]
        start = self.take(count * struct.calcsize(code))
        return list(struct.unpack_from(f"<{count}{code}", self.data, start)) if keep else []

    def strings(self, count: int) -> list[str]:
        # A hot loop: 500 thousand merges. Each string takes at least the 8 bytes of its length.
        if count * 8 > self.end - self.at:
            self.take(count * 8)
        data, unpack, at, end = self.data, struct.Struct("<Q").unpack_from, self.at, self.end
        found = []
        try:
            for _ in range(count):
                (size,) = unpack(data, at)
                at += 8 + size
                if at > end:
                    self.at = end
                    self.take(size)
                found.append(data[at - size : at].decode("utf-8"))
        except (struct.error, UnicodeDecodeError) as error:
            raise InvalidTokenizerError(
                f"a string list of the GGUF file is damaged: {error}"
            ) from None
        self.at = at
        return found
