"""Decompression, and damage."""

from __future__ import annotations

import gzip
import lzma
import random
from pathlib import Path

import pytest
import zstandard

from vocabshift.errors import CorpusError
from vocabshift.text import files
from vocabshift.text.documents import read_blocks, read_whole
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


@pytest.mark.parametrize("n_zeros", [4, 20_000])
def test_padding_between_streams_of_xz(tmp_path: Path, n_zeros: int) -> None:
    """The format allows zeros there."""
    data = lzma.compress(CONTENT)
    joined = data + bytes(n_zeros) + data + bytes(n_zeros)
    assert 2 * CONTENT == b"".join(read_chunks(write(tmp_path, "xz", joined)))


def test_xz_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    """Of a dictionary of 4 GB, which the header of a small file may name, all would be filled."""
    data = bytearray(lzma.compress(CONTENT, format=lzma.FORMAT_ALONE))
    data[1:5] = b"\xff" * 4
    with pytest.raises(CorpusError, match=r"a\.txt\.xz: damaged .*[Mm]emory"):
        list(read_chunks(write(tmp_path, "xz", bytes(data))))
    small = lzma.compress(CONTENT, preset=9)
    assert CONTENT == b"".join(read_chunks(write(tmp_path, "xz", small)))


def test_unreadable_file_says_why(tmp_path: Path) -> None:
    """What the system says is passed on."""
    with pytest.raises(CorpusError, match=r"a\.txt: cannot be read \(No such file"):
        list(read_chunks(File(tmp_path / "a.txt", "txt")))


@pytest.mark.parametrize("compression", COMPRESS)
def test_a_small_file_of_much_text_comes_in_small_chunks(tmp_path: Path, compression: str) -> None:
    """200 MB in a file of a few kilobytes (a bomb), 32 MB at a time at most."""
    data = COMPRESS[compression](bytes(200_000_000))
    assert len(data) < 250_000
    lengths = [len(chunk) for chunk in read_chunks(write(tmp_path, compression, data))]
    assert 200_000_000 == sum(lengths)
    assert max(lengths) <= 32 << 20


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("begin", [b"", b"a\n" * 600_000], ids=["alone", "after others"])
def test_a_line_without_end_is_refused(
    tmp_path: Path, monkeypatch, compression: str, begin: bytes
) -> None:
    """Of a compressed file, where its length cannot be seen; many short lines are no long one."""
    monkeypatch.setattr(files, "MOST_PACKED_BYTES", 2_000_000)
    line = random.Random(0).randbytes(2_000_001).replace(b"\n", b"a")
    long = begin + line + b"\nb\n"
    file = write(tmp_path, compression, COMPRESS[compression](long))
    with pytest.raises(CorpusError, match=rf"a\.txt\.{compression}: a line of more than 2,000,000"):
        list(read_blocks(file))
    short = begin + line[1:] + b"\n" + line[2:]
    file = write(tmp_path, compression, COMPRESS[compression](short))
    assert short == b"".join(bytes(block) for _, block in read_blocks(file))
    (tmp_path / "a.txt").write_bytes(long)
    plain = File(tmp_path / "a.txt", "txt")
    assert long == b"".join(bytes(block) for _, block in read_blocks(plain))


def test_a_document_without_end_is_refused(tmp_path: Path, monkeypatch) -> None:
    """Where a file is one document, its lines count together."""
    monkeypatch.setattr(files, "MOST_PACKED_BYTES", 1_000_000)
    content = b"a\n" * 500_000
    assert content == read_whole(write(tmp_path, "gz", gzip.compress(content)))
    with pytest.raises(CorpusError, match=r"a\.txt\.gz: a document of more than 1,000,000 bytes"):
        read_whole(write(tmp_path, "gz", gzip.compress(content + b"a")))
