"""A reader for protobuf's wire format, as little of it as SentencePiece models need.

Owns varints, tags and field lengths, each checked against the end of the data, and which fields of
a TrainerSpec rule its pieces. Sources: protobuf.dev/programming-guides/encoding;
sentencepiece_model.proto. Written here because the generated schema that the sentencepiece package
ships needs the protobuf runtime, and clashes with other copies of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from vocabshift.tokenizer.components import SentencePieceRules

Value = int | bytes
"""A varint as int; a fixed 32 or 64 bit value or a length-delimited one as its bytes."""


class WireError(ValueError):
    """The bytes are not a protobuf message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The (field number, value) pairs of a message, in file order."""
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


def from_trainer_spec(fields: Mapping[int, Value]) -> SentencePieceRules:
    """The rules in a TrainerSpec; fields that are not there have the defaults of the format.

    WireError for fields that are not numbers, or numbers that no trainer accepts.
    """
    try:
        return SentencePieceRules(
            max_length=int32(fields.get(20, 16)),
            split_by_script=_flag(fields, 21, True),
            split_by_whitespace=_flag(fields, 22, True),
            split_by_number=_flag(fields, 23, True),
            whitespace_as_suffix=_flag(fields, 24, False),
            split_digits=_flag(fields, 25, False),
            whitespace_only=_flag(fields, 26, False),
        )
    except ValueError as error:
        raise WireError(str(error)) from None


def _flag(fields: Mapping[int, Value], number: int, default: bool) -> bool:
    return bool(int32(fields.get(number, default)))
