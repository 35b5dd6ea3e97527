"""A reader for protobuf's wire format, as little of it as SentencePiece models need.

Owns varints, tags and field lengths, each checked against the end of the data. Knows no schema.
Source: protobuf.dev/programming-guides/encoding. Written here because the generated schema that
the sentencepiece package ships needs the protobuf runtime, and clashes with other copies of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | bytes
"""A varint as int; a fixed 32 or 64 bit value or a length-delimited one as its bytes."""


class WireError(ValueError):
    """The bytes are no protobuf message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The (field number, value) pairs of a message, in the order in which they stand."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"field number 0 at byte {at}")
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in {1, 5}:
            length = 8 if kind == 1 else 4
        else:
            raise WireError(f"wire type {kind} at byte {at}")
        if length > end - at:
            raise WireError(f"a field of {length} bytes at byte {at} of {end}")
        yield number, data[at : at + length]
        at += length


def float32(value: Value) -> float:
    """The value of a `float` field."""
    if not isinstance(value, bytes) or len(value) != 4:
        raise WireError("a float is not four bytes long")
    return float(struct.unpack("<f", value)[0])


def text(value: Value) -> str:
    """The value of a `string` field."""
    if not isinstance(value, bytes):
        raise WireError("a string is a number")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"a string is not UTF-8: {error}") from None


def int32(value: Value) -> int:
    """The value of an `int32` or enum field."""
    if not isinstance(value, int):
        raise WireError("a number is a string")
    return value - (1 << 64) if value >= 1 << 63 else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError(f"a number does not end at byte {at} of {len(data)}")
