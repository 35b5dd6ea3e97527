"""Blocks and lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.documents import (
    as_utf8,
    read_blocks,
    read_lines,
    read_whole,
    split_lines,
    stream_blocks,
)
from vocabshift.text.files import File


def lines_of(content: bytes) -> list[str]:
    return [text for block in read_lines([(0, content)], "here") for text in block.texts()]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n\r\n\n", []),
        (b"a", ["a"]),
        (b"a\r\n\r\nb\n", ["a", "b"]),
        (b"a\rb\nc\r", ["a\rb", "c\r"]),
        (b" \n\t\n", [" ", "\t"]),
        ("\u2028\x85\x0b\n".encode(), ["\u2028\x85\x0b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf\xef\xbb\xbf\na", ["\ufeff", "a"]),
        (b"\xef\xbb\xbf\r\na", ["a"]),
        (b"\xef\xbb\xbf", []),
    ],
)
def test_what_a_line_is(content: bytes, lines: list[str]) -> None:
    """Only \\n and \\r\\n end a line; an empty one is no document, a first BOM no text."""
    assert lines == lines_of(content)


def test_lines_are_numbered_with_the_empty_ones() -> None:
    """Readers that name a line need all of them."""
    assert ["a", "", "b"] == list(split_lines([(0, b"a\n"), (2, b"\r\nb")], "here"))


def test_mapped_blocks_end_at_line_ends(tmp_path: Path) -> None:
    """A line longer than a block makes a longer block; nothing is copied."""
    content = b"ab\nc\n" + b"d" * 30 + b"\nef"
    (tmp_path / "a.txt").write_bytes(content)
    blocks = list(read_blocks(File(tmp_path / "a.txt", "txt"), block_bytes=4))
    assert [0, 3, 5, 36] == [at for at, _ in blocks]
    assert content == b"".join(block for _, block in blocks)
    assert all(isinstance(block, memoryview) for _, block in blocks)


def test_mapped_blocks_need_no_page_border(tmp_path: Path) -> None:
    """Blocks begin anywhere, whatever the system's pages are."""
    content = b"".join(b"%d\n" % n for n in range(20_000))
    (tmp_path / "a.txt").write_bytes(content)
    blocks = list(read_blocks(File(tmp_path / "a.txt", "txt"), block_bytes=5_001))
    assert len(blocks) > 20
    assert content == b"".join(block for _, block in blocks)


def test_stream_blocks_end_at_line_ends() -> None:
    """A line over many chunks is joined; the rest without a line end comes last."""
    chunks = [b"ab\nc", b"d\ne", b"ffff", b"gggg", b"h\ni", b"j"]
    blocks = list(stream_blocks(chunks, block_bytes=5))
    assert [(0, b"ab\ncd\n"), (6, b"effffggggh\n"), (17, b"ij")] == blocks


def test_bytes_that_are_not_utf8_are_located(tmp_path: Path) -> None:
    """The offset is that in the file, whichever block it is in."""
    path = tmp_path / "a.txt"
    path.write_bytes("एक\nदो\n".encode() + b"\xff\n")
    with pytest.raises(
        CorpusError, match=r"a\.txt: not UTF-8 at byte offset 14, line 3: byte 0xff"
    ):
        list(read_lines(read_blocks(File(path, "txt"), block_bytes=4), str(path)))
    with pytest.raises(
        CorpusError, match=r"a\.txt: not UTF-8 at byte offset 14, line 3: byte 0xff"
    ):
        read_whole(File(path, "txt"))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a\n\xe0\xa4", "offset 2, line 2: the text ends inside a character, of which 2 of 3"),
        (b"\xf0\x9f\x98", "offset 0, line 1: the text ends inside a character, of which 3 of 4"),
        (b"\n\n\xc3", "offset 2, line 3: the text ends inside a character, of which 1 of 2"),
        (b"\xe0\xa4\n", "offset 0, line 1: byte 0xe0 is part of no character"),
        (b"\r\na\x80", "offset 3, line 2: byte 0x80 is part of no character"),
        (b"a\xff", "offset 1, line 1: byte 0xff is part of no character"),
        (b"\xf0\x9f\x98a", "offset 0, line 1: byte 0xf0 is part of no character"),
    ],
)
def test_a_cut_is_told_from_other_bytes(content: bytes, what: str, tmp_path: Path) -> None:
    """iconv would not help with text that was cut; both can be read with U+FFFD."""
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    for read in (
        lambda: list(read_lines(read_blocks(File(path, "txt"), block_bytes=1), "a.txt")),
        lambda: list(split_lines([(0, content)], "a.txt")),
        lambda: read_whole(File(path, "txt")),
    ):
        with pytest.raises(CorpusError) as caught:
            read()
        assert what in str(caught.value)
        assert ("iconv" in str(caught.value)) == ("part of no character" in what)
        assert "--errors replace" in str(caught.value)


@pytest.mark.parametrize("data", [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\xa4"])
def test_utf8_is_checked_strictly(data: bytes) -> None:
    """Overlong forms, surrogates, what lies above Unicode, and characters cut short."""
    with pytest.raises(CorpusError, match="offset 12"):
        as_utf8(b"ab" + data, "here", offset=10)
