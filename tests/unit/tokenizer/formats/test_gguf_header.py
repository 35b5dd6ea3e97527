"""Headers of GGUF files: where tensors are, and headers that lie about it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.gguf_header import read_header

Write = Callable[[dict[str, Any]], bytes]


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def tensor(name: str, *lengths: int, start: int = 0, kind: int = 0) -> bytes:
    """A description, as the format has it: lengths from the last to the first."""
    shape = struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths[::-1])
    return string(name) + shape + struct.pack("<IQ", kind, start)


def file_of(*tensors: bytes, keys: bytes = b"", n_keys: int = 0, data: bytes = bytes(64)) -> bytes:
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), n_keys) + keys + b"".join(tensors)
    return header + bytes(-len(header) % 32) + data


def test_shapes_and_places() -> None:
    found = read_header(file_of(tensor("a", 2, 3), tensor("b", 4, start=32, kind=8)))
    assert {} == found.metadata
    assert 0 == found.data_start % 32
    a, b = found.tensors
    assert ("a", (2, 3), 0, found.data_start, 24) == a
    assert ("b", (4,), 8, found.data_start + 32) == b[:4]


def test_the_file_says_how_data_are_aligned() -> None:
    keys = string("general.alignment") + struct.pack("<II", 4, 8)
    found = read_header(file_of(tensor("a", 1, start=8), keys=keys, n_keys=1))
    assert 0 == found.data_start % 8
    assert found.data_start + 8 == found.tensors[0].start
    bad = string("general.alignment") + struct.pack("<II", 4, 24)
    with pytest.raises(InvalidTokenizerError, match="alignment of the GGUF file is 24"):
        read_header(file_of(keys=bad, n_keys=1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "byte 0 does not begin"),
        (b"GGML" + bytes(40), "byte 0 does not begin"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**40, 0) + bytes(99), "byte 8: .* claims 1099511627776"),
        (file_of(tensor("a", 1, start=128)), "'a', described at byte 24 .* begin at byte 192 of"),
        (file_of(tensor("a", 1, start=4)), "'a', described at byte 24"),
        (file_of(tensor("a", 1), tensor("a", 1)), "byte 57: the tensor 'a' .* is there twice"),
        (file_of(tensor("a", 2, 0)), "byte 24: the tensor 'a' of the GGUF file is empty"),
        (file_of(tensor("a")), "byte 24: the tensor 'a' .* has 0 dimensions"),
        (file_of(tensor("a", 1, 1, 1, 1, 1)), "has 5 dimensions; 1 to 4 are possible"),
        (
            file_of(keys=(string("k") + struct.pack("<II", 4, 8)) * 2, n_keys=2),
            "byte 41: the GGUF file has the key 'k' twice",
        ),
        (
            file_of(
                keys=string("k") + struct.pack("<IIQ", 9, 8, 1) + string("\xff"), n_keys=1
            ).replace("\xff".encode(), b"\xff\xff"),
            "byte 57: a string list",
        ),
    ],
)
def test_headers_that_lie(data: bytes, message: str) -> None:
    with pytest.raises(InvalidTokenizerError, match=message):
        read_header(data)


def test_every_truncation_names_the_byte(gguf_file: Write, gguf_metadata: dict[str, Any]) -> None:
    keys = gguf_file(gguf_metadata)
    whole = file_of(
        tensor("a", 2, 3), tensor("b", 4, start=32), keys=keys[24:], n_keys=len(gguf_metadata)
    )
    end_of_data = len(whole) - 32  # the second tensor begins there
    assert 2 == len(read_header(whole).tensors)
    for end in range(0, end_of_data, 3):
        with pytest.raises(InvalidTokenizerError, match=r"byte \d+"):
            read_header(whole[:end])
