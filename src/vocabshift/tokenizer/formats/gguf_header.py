"""The header of a GGUF file, read and written: its metadata, and where each tensor is.

Owns the layout (github.com/ggml-org/ggml/blob/master/docs/gguf.md; versions 2 and 3,
little-endian; 3 is written). A file is not trusted: every count and length is compared with the
bytes that are left before anything is allocated, and every error names the byte. Knows neither keys
nor tensor types. Written here because the gguf package trusts the file, and takes 13 seconds for a
vocabulary of 256 thousand tokens, which is one second here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from vocabshift.errors import InvalidTokenizerError

MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""struct code by GGUF type: u8 i8 u16 i16 u32 i32 f32 bool u64 i64 f64."""
_SMALLEST_KEY = 8 + 4 + 1  # an empty name, a type, a value of one byte
_SMALLEST_TENSOR = 8 + 4 + 8 + 4 + 8  # an empty name, one length, a type, an offset
_MAX_KEYS = 1 << 16
_MAX_DIMENSIONS = 4
_VERSION = 3
ALIGNMENT = 32
"""Tensors begin at multiples of it, unless `general.alignment` says otherwise."""


class TensorInfo(NamedTuple):
    """One tensor, as the header describes it."""

    name: str
    shape: tuple[int, ...]  # rows first, as numpy and torch have it; GGUF writes it backwards
    type: int  # a number of GGMLQuantizationType
    start: int  # byte of the file at which its data begin
    described_at: int  # byte of the file at which its description begins


class Header(NamedTuple):
    """All that precedes the data of the tensors."""

    metadata: dict[str, Any]
    tensors: tuple[TensorInfo, ...]
    data_start: int  # byte of the file at which the data of the first tensor may begin
    places: dict[str, tuple[int, int]]  # of each key the bytes of the file, with its name and type


def read_metadata(data: bytes, *, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """The metadata of a GGUF file; the values of keys that are not `wanted` are skipped.

    `data` may be a memory map: only the header is read. InvalidTokenizerError for a damaged one.
    """
    reader = _Reader(data)
    _n_tensors, n_keys = reader.counts()
    return reader.metadata(n_keys, wanted)


def read_header(data: bytes) -> Header:
    """The whole header: all metadata, and the tensors in the order of the file.

    `data` may be a memory map. InvalidTokenizerError where the header is damaged or cut short. Of
    a tensor only the beginning is compared with the file's end: sizes depend on its type.
    """
    reader = _Reader(data)
    n_tensors, n_keys = reader.counts()
    metadata = reader.metadata(n_keys, lambda _: True)
    infos = reader.tensors(n_tensors)
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise InvalidTokenizerError(
            f"general.alignment of the GGUF file is {alignment!r}, no power of two"
        )
    data_start = reader.at + -reader.at % alignment
    placed = []
    for info in infos:
        start = data_start + info.start
        if info.start % alignment or start > len(data):
            raise InvalidTokenizerError(
                f"the tensor {info.name!r}, described at byte {info.described_at} of the GGUF "
                f"file, is said to begin at byte {start} of {len(data)}: the file is cut short or "
                "damaged"
            )
        placed.append(info._replace(start=start))
    return Header(metadata, tuple(placed), data_start, reader.places)


class _Reader:
    """A place in the data; every read checks that so many bytes are left."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)
        self.at = 0
        self.places: dict[str, tuple[int, int]] = {}

    def counts(self) -> tuple[int, int]:
        """Step over the beginning of the file; how many tensors and keys follow."""
        if self.data[:4] != MAGIC:
            raise InvalidTokenizerError('this is no GGUF file: byte 0 does not begin "GGUF"')
        self.at = 4
        version = self.scalar("I")
        if version not in (2, 3):
            raise InvalidTokenizerError(
                f"byte 4: GGUF version {version} is not read; versions 2 and 3 are"
            )
        n_tensors, n_keys = self.scalar("Q"), self.scalar("Q")
        left = self.end - self.at
        if n_keys > min(_MAX_KEYS, left // _SMALLEST_KEY):
            raise InvalidTokenizerError(
                f"byte 16: the GGUF header claims {n_keys} keys, and {left} bytes follow; it is "
                "cut short or damaged"
            )
        if n_tensors > left // _SMALLEST_TENSOR:
            raise InvalidTokenizerError(
                f"byte 8: the GGUF header claims {n_tensors} tensors, and {left} bytes follow; it "
                "is cut short or damaged"
            )
        return n_tensors, n_keys

    def metadata(self, n_keys: int, wanted: Callable[[str], bool]) -> dict[str, Any]:
        """Read the keys that come next."""
        found: dict[str, Any] = {}
        for _ in range(n_keys):
            place = self.at
            key = self.string()
            value = self.value(self.scalar("I"), keep=wanted(key))
            if key in found:
                raise InvalidTokenizerError(
                    f"byte {place}: the GGUF file has the key {key!r} twice"
                )
            self.places[key] = (place, self.at)
            if wanted(key):
                found[key] = value
        return found

    def tensors(self, n_tensors: int) -> list[TensorInfo]:
        """Read the descriptions that come next; their starts are relative to the data."""
        found: dict[str, TensorInfo] = {}
        for _ in range(n_tensors):
            place = self.at
            name = self.string()
            n_dimensions = self.scalar("I")
            if not 1 <= n_dimensions <= _MAX_DIMENSIONS:
                raise InvalidTokenizerError(
                    f"byte {place}: the tensor {name!r} of the GGUF file has {n_dimensions} "
                    f"dimensions; 1 to {_MAX_DIMENSIONS} are possible"
                )
            shape = tuple(self.scalar("Q") for _ in range(n_dimensions))[::-1]
            kind, start = self.scalar("I"), self.scalar("Q")
            if name in found or 0 in shape:
                wrong = "is there twice" if name in found else "is empty"
                raise InvalidTokenizerError(
                    f"byte {place}: the tensor {name!r} of the GGUF file {wrong}"
                )
            found[name] = TensorInfo(name, shape, kind, start, place)
        return list(found.values())

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

    def value(self, kind: int, *, keep: bool) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array(keep=keep)
        if kind not in _SCALARS:
            raise InvalidTokenizerError(
                f"byte {self.at - 4}: the GGUF file holds a value of unknown type {kind}"
            )
        return self.scalar(_SCALARS[kind])

    def array(self, *, keep: bool) -> list[Any]:
        place = self.at
        kind, count = self.scalar("I"), self.scalar("Q")
        if kind == _STRING:
            return self.strings(count)
        if kind not in _SCALARS:
            raise InvalidTokenizerError(
                f"byte {place}: the GGUF file holds an array of unknown type {kind}"
            )
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
                    self.at = at - size
                    self.take(size)
                found.append(data[at - size : at].decode("utf-8"))
        except (struct.error, UnicodeDecodeError) as error:
            place = at - size if isinstance(error, UnicodeDecodeError) else at
            raise InvalidTokenizerError(
                f"byte {place}: a string list of the GGUF file is damaged: {error}"
            ) from None
        self.at = at
        return found


# Writing.

_KINDS = {bool: 7, int: 4, float: 6, str: _STRING}  # bool, u32, f32, string
_ITEM_KINDS = {**_KINDS, int: 5}  # i32 within lists


def key_bytes(name: str, value: Any) -> bytes:
    """A key as it is stored: a bool, a whole number (u32), a number (f32), a text, or a list.

    Lists are of one type, and not empty; whole numbers in them are stored as i32.
    """
    start = _string_bytes(name)
    if not isinstance(value, list):
        return start + struct.pack("<I", _KINDS[type(value)]) + _value_bytes(value)
    kind = _ITEM_KINDS[type(value[0])]
    if kind == _STRING:
        items = b"".join(map(_string_bytes, value))
    else:
        items = struct.pack(f"<{len(value)}{_SCALARS[kind]}", *value)
    return start + struct.pack("<IIQ", _ARRAY, kind, len(value)) + items


def header_bytes(
    keys: Iterable[bytes],
    tensors: Sequence[tuple[str, tuple[int, ...], int, int]],
    *,
    alignment: int = ALIGNMENT,
) -> tuple[bytes, list[int]]:
    """The beginning of a file, and the byte of the file at which each tensor begins.

    keys: of `key_bytes`. tensors: (name, shape with rows first, type, bytes), in their order.
    """
    stored, parts, starts, place = list(keys), [], [], 0
    for name, shape, kind, n_bytes in tensors:
        lengths = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        parts.append(_string_bytes(name) + lengths + struct.pack("<IQ", kind, place))
        starts.append(place)
        place += math.ceil(n_bytes / alignment) * alignment
    start = MAGIC + struct.pack("<IQQ", _VERSION, len(tensors), len(stored))
    data = b"".join([start, *stored, *parts])
    data += b"\0" * (-len(data) % alignment)
    return data, [len(data) + start for start in starts]


def _value_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return _string_bytes(value)
    return struct.pack("<" + _SCALARS[_KINDS[type(value)]], value)


def _string_bytes(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data
