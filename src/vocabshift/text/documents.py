r"""Documents: blocks of UTF-8 text with the offsets of the documents in them.

A corpus is read in these blocks. Owns the value, how separate texts are packed into it, and how
files and streams are cut into lines. A plain file is memory-mapped block by block and never copied;
a compressed one is joined from its chunks. Memory is bounded by the block and the longest line. A
mapped file must not be truncated while it is read.

A line ends at `\n` or `\r\n`, which are not part of the document; a lone `\r` does not end a line.
Empty lines are skipped; lines of spaces are documents. Bytes must be UTF-8, or are made so on
request, and are not altered otherwise. A byte order mark at the start of a text is not part of it.
"""

from __future__ import annotations

import codecs
import mmap
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import IO, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.files import File, bounded_chunks, unreadable

Item = TypeVar("Item")

TextErrors = Literal["strict", "replace"]
"""What to do with bytes that are not UTF-8: raise a CorpusError, or put U+FFFD in their place."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""U+FEFF, with which some editors begin a text file."""

BLOCK_BYTES = 8 << 20
"""Target size of a block; a longer document makes a longer block."""

_BLOCK_DOCUMENTS = 1 << 18  # each packed text costs an object of its own until it is joined


@dataclass(frozen=True, eq=False, slots=True)
class Documents:
    """Non-empty documents of one source."""

    data: bytes | memoryview  # valid UTF-8
    starts: NDArray[np.int64]  # (n,) offsets into data, in bytes
    ends: NDArray[np.int64]  # (n,) exclusive; bytes between documents belong to none
    language: str | None = None  # label as the user wrote it
    weight: float = 1.0  # how often each document counts; above 0
    source: str = "texts"  # for messages: the file, data set or "standard input"

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.starts)

    @property
    def n_bytes(self) -> int:
        """Bytes of all documents, without the line ends between them."""
        return int((self.ends - self.starts).sum())

    def where(self, is_taken: NDArray[np.bool_]) -> Documents:
        """The documents for which (n,) `is_taken` is true."""
        return replace(self, starts=self.starts[is_taken], ends=self.ends[is_taken])

    def texts(self) -> Iterator[str]:
        """The documents as strings."""
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield str(self.data[start:end], "utf-8")


def pack(
    texts: Iterable[bytes], source: str, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[Documents]:
    """Join `texts` (one UTF-8 document each) into blocks; empty ones are dropped."""
    waiting: list[bytes] = []
    n_bytes = 0
    for text in texts:
        if not text:
            continue
        waiting.append(text)
        n_bytes += len(text)
        if n_bytes >= block_bytes or len(waiting) >= _BLOCK_DOCUMENTS:
            yield _joined(waiting, source)
            waiting, n_bytes = [], 0
    if waiting:
        yield _joined(waiting, source)


def _joined(texts: list[bytes], source: str) -> Documents:
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    ends = np.cumsum(lengths)
    return Documents(b"".join(texts), ends - lengths, ends, source=source)


# Blocks of whole lines, of files and streams.

Block = tuple[int, bytes | memoryview]
"""Offset within the file, in bytes, and the bytes from there up to and including a line end."""


def read_blocks(file: File, *, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Content of `file` in blocks of whole lines, not yet validated."""
    if file.compression is not None:
        yield from stream_blocks(bounded_chunks(file, "line"), block_bytes=block_bytes)
        return
    try:
        stream = file.path.open("rb")
    except OSError as error:
        raise unreadable(file.path, error) from error
    with stream:
        yield from mapped_blocks(stream, block_bytes=block_bytes)


def mapped_blocks(stream: IO[bytes], *, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Blocks of an open file of the file system, without a copy.

    Each block is a mapping of its own, so that its pages go when its last user does.
    """
    size = os.fstat(stream.fileno()).st_size
    at = 0
    while at < size:
        base = at - at % mmap.ALLOCATIONGRANULARITY
        length = block_bytes
        while True:
            end = min(at + length, size)
            mapped = mmap.mmap(stream.fileno(), end - base, access=mmap.ACCESS_READ, offset=base)
            if end == size:
                break
            if (newline := mapped.rfind(b"\n", at - base)) >= 0:
                end = base + newline + 1
                break
            length *= 2
        yield at, memoryview(mapped)[at - base : end - base]
        at = end


def stream_blocks(chunks: Iterable[bytes], *, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Blocks joined from the chunks of a stream."""
    waiting: list[bytes] = []
    n_bytes = at = 0
    for chunk in chunks:
        # Only the newest chunk is searched, so a long line takes time linear in its length.
        cut = chunk.rfind(b"\n") + 1 if n_bytes + len(chunk) >= block_bytes else 0
        if cut:
            block = b"".join((*waiting, chunk[:cut]))
            yield at, block
            at += len(block)
            waiting, n_bytes = [], 0
        waiting.append(chunk[cut:])
        n_bytes += len(chunk) - cut
    if n_bytes:
        yield at, b"".join(waiting)


def read_lines(
    blocks: Iterable[Block], source: str, errors: TextErrors = "strict", *, threads: int = 1
) -> Iterator[Documents]:
    """Every non-empty line as a document; a byte order mark at the start is left out."""
    for number, (data, starts, ends) in enumerate(_lines(blocks, source, errors, threads)):
        if number == 0 and data[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK:
            starts[0] += len(BYTE_ORDER_MARK)
        lines = Documents(data, starts, ends, source=source)
        has_text = starts < ends
        if not has_text.all():
            lines = lines.where(has_text)
        if len(lines):
            yield lines


def split_lines(
    blocks: Iterable[Block], source: str, errors: TextErrors = "strict"
) -> Iterator[str]:
    """Every line as a string, empty ones included, so that lines can be numbered."""
    for data, starts, ends in _lines(blocks, source, errors, threads=1):
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield str(data[start:end], "utf-8")


def _lines(
    blocks: Iterable[Block], source: str, errors: TextErrors, threads: int
) -> Iterator[tuple[bytes | memoryview, NDArray[np.int64], NDArray[np.int64]]]:
    """Valid UTF-8 with the spans of all lines in it, block by block."""
    n_lines = 0
    for offset, block in blocks:
        # A character never spans blocks, which end at line ends: each is repaired by itself.
        data = as_utf8(block, source, errors, offset=offset, n_lines=n_lines, threads=threads)
        starts, ends = _core.line_spans(data, threads)
        n_lines += len(starts)
        yield data, starts, ends


def read_whole(file: File, errors: TextErrors = "strict") -> bytes:
    """The whole content, valid UTF-8; it is held in memory."""
    return bytes(as_utf8(b"".join(bounded_chunks(file, "document")), str(file.path), errors))


def as_utf8(
    data: bytes | memoryview,
    source: str,
    errors: TextErrors = "strict",
    *,
    offset: int = 0,
    n_lines: int = 0,
    threads: int = 1,
) -> bytes | memoryview:
    """The data itself if it is UTF-8; if not, with `errors="replace"` repaired, else a CorpusError.

    Replaced is every maximal subpart of an ill-formed sequence, by one U+FFFD, as Unicode
    recommends (3.9, U+FFFD Substitution of Maximal Subparts) and Python does. The error names byte
    offset and line. `offset` and `n_lines`: what lies before `data` in the file, or in the
    decompressed content of the file.
    """
    invalid = _core.first_invalid_utf8(data, threads)
    if invalid < 0:
        return data
    if errors == "replace":
        return str(data, "utf-8", "replace").encode()
    line = n_lines + bytes(data[:invalid]).count(b"\n") + 1
    found = bytes(data[invalid : invalid + 4])
    if _is_cut(found):
        what = (
            f"the text ends inside a character, of which {len(found)} of "
            f"{_LENGTHS[found[0] >> 4]} bytes are there; it was cut off: cut or fetch it anew,"
        )
    else:
        what = f"byte 0x{found[0]:02x} is part of no character; convert it, for example with iconv,"
    raise CorpusError(
        f"{source}: not UTF-8 at byte offset {offset + invalid}, line {line}: {what} leave it out, "
        "or read it with --errors replace, which puts U+FFFD there"
    )


_LENGTHS = {0xC: 2, 0xD: 2, 0xE: 3, 0xF: 4}
"""Bytes of a character, by the upper half of its first byte."""


def _is_cut(rest: bytes) -> bool:
    """Whether the text ends with `rest`, at most 4 bytes, and it begins a longer character."""
    try:
        return not codecs.getincrementaldecoder("utf-8")().decode(rest)
    except UnicodeDecodeError:
        return False


# Reading ahead: the threads that count words or encode would wait while a block is checked and cut,
# so the next block is prepared while the current one is in use.

_LAST_WAIT = 1.0  # seconds; a reader that waits for the network is abandoned


def read_ahead(items: Iterable[Item], *, threads: int) -> Iterator[Item]:
    """The same items in the same order, at most one read ahead; errors surface at their item.

    With one thread nothing is read ahead, and no thread is started.
    """
    return iter(items) if threads <= 1 else _read_ahead(iter(items))


def _read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    asked = Semaphore(1)
    made: SimpleQueue[Item | _Ended] = SimpleQueue()
    is_closed = False

    def read() -> None:
        while asked.acquire() and not is_closed:
            try:
                made.put(next(items))
            except BaseException as reason:  # raised again where the item is used
                made.put(_Ended(reason))
                return

    # A daemon thread: an interrupted program ends even if reading hangs.
    reader = Thread(target=read, name="vocabshift-read-ahead", daemon=True)
    reader.start()
    try:
        while True:
            item = made.get()
            if isinstance(item, _Ended):
                if isinstance(item.reason, StopIteration):
                    return
                raise item.reason
            asked.release()
            yield item
    finally:
        is_closed = True
        asked.release()
        reader.join(_LAST_WAIT)


class _Ended:
    """The reason why there are no more items."""

    def __init__(self, reason: BaseException) -> None:
        self.reason = reason
