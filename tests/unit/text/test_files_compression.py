"""Decompression, and damage."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from vocabshift.errors import CorpusError
from vocabshift.text.files import File, read_chunks

CONTENT = "ஒரு line\n".encode() * 50_000
COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}


def write(folder: Path, compression: str, data: bytes) -> File:
    path = folder / f"a.txt.{compression}"
    path.write_bytes(data)
    return File(path, "txt", compression)


@pytest.mark.parametrize("compression", COMPRESS)
def test_several_streams_in_one_file(tmp_path: Path, compression: str) -> None:
    """Files that were joined after compression are read to their end."""
    data = COMPRESS[compression](CONTENT)
    assert 2 * CONTENT == b"".join(read_chunks(write(tmp_path, compression, data + data)))


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("damage", ["cut", "flipped", "other"])
def test_damage_names_the_file(tmp_path: Path, compression: str, damage: str) -> None:
    """Cut short, changed in the middle, or not compressed at all."""
    data = COMPRESS[compression](CONTENT)
    middle = len(data) // 2
    damaged = {
        "cut": data[:-5],
        "flipped": data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :],
        "other": b"plain text",
    }[damage]
    if (compression, damage) == ("zst", "flipped"):
        damaged = data[:6] + b"\xff" * 20 + data[26:]  # frames of zstandard have no checksum
    with pytest.raises(CorpusError, match=rf"a\.txt\.{compression}: damaged"):
        list(read_chunks(write(tmp_path, compression, damaged)))


def test_unreadable_file_says_why(tmp_path: Path) -> None:
    """What the system says is passed on."""
    with pytest.raises(CorpusError, match=r"a\.txt: cannot be read \(No such file"):
        list(read_chunks(File(tmp_path / "a.txt", "txt")))
