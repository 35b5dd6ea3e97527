"""Finds the files of a path, a folder or a glob, and reads their decompressed bytes.

Owns the supported suffixes, gzip, Zstandard and xz. A damaged file raises a CorpusError that names
it.
"""

from __future__ import annotations

import glob
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from vocabshift.errors import CorpusError

FORMATS = ("txt", "jsonl", "json", "parquet")
COMPRESSIONS = ("gz", "zst", "xz")

SUPPORTED = "." + " .".join(FORMATS) + ", each also ." + " .".join(COMPRESSIONS)
"""For messages."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that can be read."""

    path: Path
    format: str  # one of FORMATS
    compression: str | None = None  # one of COMPRESSIONS

    @property
    def is_text(self) -> bool:
        """Whether the file is plain text rather than records with columns."""
        return self.format == "txt"


def file_at(path: str | Path) -> File | None:
    """The file by its suffixes, or None if they are not known; the file need not exist."""
    path = Path(path)
    suffixes = [suffix[1:].lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else None
    if suffixes and suffixes[-1] in FORMATS:
        return File(path, suffixes[-1], compression)
    return None


def exists(place: str) -> bool:
    """Whether `place` is an existing path or a glob with a match (`~` expands)."""
    expanded = os.path.expanduser(place)  # noqa: PTH111 - Path raises for an unknown user
    return os.path.exists(expanded) or next(_matches(expanded), None) is not None  # noqa: PTH110


def find(place: str | Path) -> tuple[File, ...]:
    """The files of a path, a folder or a glob.

    A path that exists is taken literally, brackets and all. A folder yields all supported files in
    it and below, sorted by path; hidden files and folders are skipped, and so are files with other
    suffixes. A glob (`**` crosses folders) yields every match, sorted; a match with another suffix
    is an error. Raises CorpusError if nothing can be read.
    """
    expanded = os.path.expanduser(place)  # noqa: PTH111
    if os.path.exists(expanded):  # noqa: PTH110 - False for a name that no system allows
        return tuple(_files_of(expanded))
    if not glob.has_magic(expanded):
        raise CorpusError(f"{place}: no such file or folder; check the path")
    found = {file.path: file for match in _matches(expanded) for file in _files_of(match)}
    if not found:
        raise CorpusError(f"{place}: no file matches; check the glob and quote it in the shell")
    return tuple(found[path] for path in sorted(found))


def _matches(pattern: str) -> Iterator[str]:
    if glob.has_magic(pattern):
        yield from glob.iglob(pattern, recursive=True)  # noqa: PTH207 - skips hidden files


def _files_of(name: str) -> list[File]:
    path = Path(name)
    if path.is_dir():
        files = sorted(_below(path), key=lambda file: file.path)
        if not files:
            raise CorpusError(f"{name}: no supported file in this folder; supported: {SUPPORTED}")
        return files
    if not path.is_file():
        raise CorpusError(
            f"{name} is neither a file nor a folder; give a file, or - for standard input"
        )
    file = file_at(path)
    if file is None:
        raise CorpusError(f"{name}: unknown suffix; supported: {SUPPORTED}")
    return [file]


def _below(folder: Path) -> Iterator[File]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = file_at(Path(parent, name))
            if file is not None and not name.startswith(".") and file.path.is_file():
                yield file


# Bytes of a file, decompressed as they are read.

_CHUNK_BYTES = 1 << 20
_READ_BYTES = 16 << 10
_ZST_CHUNK_BYTES = 1 << 10
"""What a decompressor object is given at once. It returns all that this holds, 32 MB at most: four
bytes of a compressed run stand for 128 kB."""
_XZ_MEMORY = 256 << 20
"""What a decompressor of xz may take: four times what `xz -9` asks for. The format allows 4 GB."""


class _DamagedError(Exception):
    """What is wrong with a compressed stream."""


def read_chunks(file: File) -> Iterator[bytes]:
    """Chunks of the decompressed content, about 1 MB each; CorpusError if it is damaged."""
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


MOST_PACKED_BYTES = 1 << 30
"""Of a line, or a document that is a whole file, in a compressed file: it is held in memory, and a
small file may stand for any size."""


def bounded_chunks(file: File, of: Literal["line", "document"]) -> Iterator[bytes]:
    """The same chunks; CorpusError once a line or document of a compressed file is too long."""
    n_bytes = 0
    for chunk in read_chunks(file):
        first = chunk.find(b"\n") if of == "line" else -1
        n_bytes += len(chunk) if first < 0 else first
        if file.compression is not None and n_bytes > MOST_PACKED_BYTES:
            raise CorpusError(
                f"{file.path}: a {of} of more than {MOST_PACKED_BYTES:,} bytes; if that is what it "
                "should be, unpack the file first"
            )
        if first >= 0:
            n_bytes = len(chunk) - 1 - chunk.rfind(b"\n")
        yield chunk


def unreadable(path: Path, error: OSError) -> CorpusError:
    """The error to raise for a file that the operating system cannot read."""
    return CorpusError(f"{path}: cannot be read ({error.strerror or error})")


_OPEN: dict[str | None, Callable[[Path], Any]] = {
    None: lambda path: path.open("rb"),
    "gz": gzip.open,
    "xz": lambda path: path.open("rb"),
    "zst": lambda path: path.open("rb"),
}


def _chunks(file: File) -> Iterator[bytes]:
    with _OPEN[file.compression](file.path) as stream:
        if file.compression == "zst":
            yield from _zst_chunks(stream)
        elif file.compression == "xz":
            yield from _xz_chunks(stream)
        else:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk


def _zst_chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """Decompress frame by frame. zstandard's own reader accepts a truncated file as complete."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = None
    while block := raw.read(_READ_BYTES):
        for start in range(0, len(block), _ZST_CHUNK_BYTES):
            compressed = block[start : start + _ZST_CHUNK_BYTES]
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


def _xz_chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """Decompress stream by stream. `lzma.open` takes no limit of memory, and passes over what
    follows the last stream."""
    stream, is_whole = None, False
    while block := raw.read(_READ_BYTES):
        while block or (stream is not None and not stream.needs_input):
            if stream is None:
                block = block.lstrip(b"\0") if is_whole else block  # padding between streams
                if not block:
                    break
                stream, is_whole = lzma.LZMADecompressor(memlimit=_XZ_MEMORY), False
            chunk = stream.decompress(block, _CHUNK_BYTES)
            block = b""
            if stream.eof:
                block, stream, is_whole = stream.unused_data, None, True
            if chunk:
                yield chunk
    if not is_whole:
        raise _DamagedError("the file ends too early")
