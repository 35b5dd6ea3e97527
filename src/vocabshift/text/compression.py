"""Bytes of a file, decompressed as they are read.

Owns gzip, Zstandard and xz, and the rule that damage is a CorpusError that names the file. Knows
nothing of what the bytes mean.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from vocabshift.errors import CorpusError
from vocabshift.text.files import File

_CHUNK_BYTES = 1 << 20
_ZST_CHUNK_BYTES = 16 << 10  # small: a decompressor object returns all that its input holds


class _DamagedError(Exception):
    """What is wrong with a compressed stream."""


def read_chunks(file: File) -> Iterator[bytes]:
    """Pieces of the decompressed content, about 1 MB each; CorpusError where it is damaged."""
    chunks = _chunks(file)
    while True:
        try:
            chunk = next(chunks, None)
        except (_DamagedError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise CorpusError(
                f"{file.path}: damaged .{file.compression} file ({error}); make or fetch it anew"
            ) from error
        except OSError as error:
            raise unreadable(file.path, error) from error
        if chunk is None:
            return
        yield chunk


def unreadable(path: Path, error: OSError) -> CorpusError:
    """The error to raise for a file that the system does not let us read."""
    return CorpusError(f"{path}: cannot be read ({error.strerror or error})")


_OPEN: dict[str | None, Callable[[Path], Any]] = {
    None: lambda path: path.open("rb"),
    "gz": gzip.open,
    "xz": lzma.open,
    "zst": lambda path: path.open("rb"),
}


def _chunks(file: File) -> Iterator[bytes]:
    with _OPEN[file.compression](file.path) as stream:
        if file.compression == "zst":
            yield from _zst_chunks(stream)
        else:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk


def _zst_chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """Frame after frame. Not zstandard's own reader: it takes a cut file for a whole one."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = None
    while compressed := raw.read(_ZST_CHUNK_BYTES):
        while compressed:
            frame = frame or decompressor.decompressobj()
            try:
                chunk = frame.decompress(compressed)
            except zstandard.ZstdError as error:
                raise _DamagedError(str(error)) from error
            compressed = frame.unused_data
            if frame.eof:
                frame = None
            if chunk:
                yield chunk
    if frame is not None:
        raise _DamagedError("the file ends too early")
