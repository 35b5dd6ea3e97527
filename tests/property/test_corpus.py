"""Whatever the text and the size of the blocks, a corpus gives back what was written."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from vocabshift import _core
from vocabshift.text.documents import pack, read_blocks, read_lines, stream_blocks
from vocabshift.text.files import File
from vocabshift.text.records import read_json, read_json_lines

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\r क्ஒ\u2028\ufeff😀"))
BLOCK_BYTES = st.integers(min_value=1, max_value=40)


def lines(content: bytes) -> list[str]:
    """The rule, slowly: \\n ends a line and takes a \\r before it along.

    Empty lines go, and a byte order mark at the start.
    """
    *ended, last = content.decode().removeprefix("\ufeff").split("\n")
    return [line for line in (*(line.removesuffix("\r") for line in ended), last) if line]


@given(content=TEXT.map(str.encode), block_bytes=BLOCK_BYTES)
def test_mapped_lines(content: bytes, block_bytes: int) -> None:
    """Lines of a plain file do not depend on where blocks are cut."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes(content)
        blocks = read_blocks(File(path, "txt"), block_bytes=block_bytes)
        found = [text for part in read_lines(blocks, "a") for text in part.texts()]
    assert lines(content) == found


@given(content=TEXT.map(str.encode), block_bytes=BLOCK_BYTES, chunk=st.integers(1, 20))
def test_streamed_lines(content: bytes, block_bytes: int, chunk: int) -> None:
    """Nor those of a stream on how its chunks are cut, within characters too."""
    chunks = [content[at : at + chunk] for at in range(0, len(content), chunk)]
    blocks = list(stream_blocks(chunks, block_bytes=block_bytes))
    assert content == b"".join(block for _, block in blocks)
    found = [text for part in read_lines(blocks, "a") for text in part.texts()]
    assert lines(content) == found


@given(texts=st.lists(TEXT), block_bytes=BLOCK_BYTES)
def test_records(texts: list[str], block_bytes: int) -> None:
    """JSON in either form, packed into blocks, gives every text that is not empty."""
    rows = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    blocks = stream_blocks([rows.encode()], block_bytes=block_bytes)
    packed = pack(read_json_lines(blocks, "a", None), "a", block_bytes=block_bytes)
    kept = [text for text in texts if text]
    assert kept == [text for part in packed for text in part.texts()]
    whole = read_json(json.dumps(texts).encode(), "a", None)
    assert kept == [text.decode() for text in whole if text]


@examples(400)
@given(
    text=st.lists(
        st.one_of(
            st.text(st.characters(codec="utf-8"), max_size=12),
            st.sampled_from(("नमस्ते ", "plain text ", "\u0800\ud7ff\ue000\uffff", "é", "😀", "ᱚᱞ")),
        ),
        max_size=40,
    ).map("".join),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=2),
    cut=st.integers(0, 3),
)
def test_the_first_byte_that_is_not_utf8_is_pythons(
    text: str, changes: list[tuple[float, int]], cut: int
) -> None:
    data = bytearray(text.encode())
    for place, byte in changes:
        if data:
            data[int(place * (len(data) - 1))] = byte
    del data[len(data) - cut :]
    try:
        data.decode()
        expected = -1
    except UnicodeDecodeError as error:
        expected = error.start
    assert _core.first_invalid_utf8(bytes(data)) == expected


@examples(50)
@given(
    text=st.text(st.sampled_from("a \n\ré\u0924\U00010330"), min_size=1, max_size=40),
    place=st.floats(0, 1),
    byte=st.sampled_from((None, 0x0A, 0x0D, 0x80, 0xE0, 0xFF)),
)
def test_threads_check_and_cut_text_as_one_does(text: str, place: float, byte: int | None) -> None:
    """Text that is long enough for five threads, with lines across their borders or none."""
    data = bytearray(text.encode() * (400_000 // len(text.encode())))
    if byte is not None:
        data[int(place * (len(data) - 1))] = byte
    try:
        data.decode()
        expected = -1
    except UnicodeDecodeError as error:
        expected = error.start
    lines = [line.removesuffix(b"\n") for line in io.BytesIO(data)]
    ended = data.count(b"\n")
    lines = [line.removesuffix(b"\r") if i < ended else line for i, line in enumerate(lines)]
    hashes = set()
    for threads in (1, 2, 3, 5):
        assert _core.first_invalid_utf8(data, threads) == expected
        starts, ends = _core.line_spans(data, threads)
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        assert [bytes(data[start:end]) for start, end in spans] == lines
        hashes.add(_core.fingerprint(data, starts, ends, 7, threads))
    assert len(hashes) == 1


def test_every_two_bytes_in_every_place_of_a_block() -> None:
    """Blocks of 64 bytes are checked at once: all leads and seconds, around their borders."""
    for lead in range(0x7F, 0x100):
        for second in (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE0, 0xFF):
            for end in (b"", b"\x80", b"\x80\x80"):
                middle = bytes([lead, second]) + end
                for before in (0, 60, 61, 62, 63, 64, 130):
                    data = b"a" * before + middle + "क".encode() * 50
                    try:
                        data.decode()
                        expected = -1
                    except UnicodeDecodeError as error:
                        expected = error.start
                    assert _core.first_invalid_utf8(data) == expected, (data, before)
