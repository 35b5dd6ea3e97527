r"""Documents: blocks of UTF-8 text with the offsets of the documents in them.

A corpus is read in these blocks. Owns the value, how separate texts are packed into it, and how
files and streams are cut into lines. A plain file is memory-mapped block by block and never copied;
a compressed one is joined from its chunks. Memory is bounded by the block and the longest line. A
mapped file must not be truncated while it is read.

A line ends at `\n` or `\r\n`, which are not part of the document; a lone `\r` does not end a line.
Empty lines are skipped; lines of spaces are documents. Bytes must be UTF-8 and are not altered: a
byte order mark at the start of a text file is part of its first document.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.files import File, read_chunks, unreadable

Item = TypeVar("Item")

BLOCK_BYTES = 16 << 20
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
        yield from stream_blocks(read_chunks(file), block_bytes=block_bytes)
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


def read_lines(blocks: Iterable[Block], source: str) -> Iterator[Documents]:
    """Every non-empty line as a document."""
    for offset, data in blocks:
        check_utf8(data, source, offset)
        starts, ends = _core.line_spans(data)
        has_text = starts < ends
        if not has_text.all():
            starts, ends = starts[has_text], ends[has_text]
        if len(starts):
            yield Documents(data, starts, ends, source=source)


def split_lines(blocks: Iterable[Block], source: str) -> Iterator[str]:
    """Every line as a string, empty ones included, so that lines can be numbered."""
    for offset, data in blocks:
        check_utf8(data, source, offset)
        starts, ends = _core.line_spans(data)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield str(data[start:end], "utf-8")


def read_whole(file: File) -> bytes:
    """The whole content, validated; it is held in memory."""
    data = b"".join(read_chunks(file))
    check_utf8(data, str(file.path))
    return data


def check_utf8(data: bytes | memoryview, source: str, offset: int = 0) -> None:
    """Raise CorpusError with the position of the first byte that is not UTF-8.

    `offset` is the offset of `data` in the file, or in the decompressed content of the file.
    """
    invalid = _core.first_invalid_utf8(data)
    if invalid >= 0:
        raise CorpusError(
            f"{source}: not UTF-8 at byte offset {offset + invalid}; convert it, for example with "
            "iconv, or leave it out"
        )


# Reading ahead: one thread checks and cuts a block. The threads that count words or encode would
# wait for it, so the next block is prepared while the current one is in use.

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
