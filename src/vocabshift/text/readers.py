"""Sources of documents: files, the Hub, standard input, texts in memory; and a key for them.

A source can be read any number of times, in constant memory. It defines its documents (lines, whole
files or records); the corpus adds their language and weight.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, get_args

from vocabshift.errors import CorpusError
from vocabshift.text.documents import (
    BYTE_ORDER_MARK,
    Documents,
    TextErrors,
    as_utf8,
    mapped_blocks,
    pack,
    read_blocks,
    read_lines,
    read_whole,
)
from vocabshift.text.files import File
from vocabshift.text.records import (
    check_installed,
    encode_text,
    read_hub,
    read_json,
    read_json_lines,
    read_parquet,
)
from vocabshift.text.spec import HubDataset

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus
    from vocabshift.text.selection import Part

DocumentUnit = Literal["line", "file"]
"""The unit of a document in a text file; in other formats every record is a document."""


def check_unit(unit: str) -> None:
    """Raise ValueError unless `unit` is "line" or "file"."""
    if unit not in get_args(DocumentUnit):
        raise ValueError(f"documents is {unit!r}; it must be 'line' or 'file'")


def check_errors(errors: str) -> None:
    """Raise ValueError unless `errors` is "strict" or "replace"."""
    if errors not in get_args(TextErrors):
        raise ValueError(f"errors is {errors!r}; it must be 'strict' or 'replace'")


class Source(Protocol):
    """A source of documents."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def n_bytes_hint(self) -> int | None:
        """Bytes of text, if known without reading."""

    def read(self, threads: int = 1) -> Iterator[Documents]:
        """All documents that are not empty, from the start; no language, weight 1."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that a path, a folder or a glob stands for."""

    name: str
    files: tuple[File, ...]
    unit: DocumentUnit = "line"
    column: str | None = None
    errors: TextErrors = "strict"  # of bytes that are not UTF-8

    def __post_init__(self) -> None:
        for file in self.files:
            if file.is_text and self.column is not None:
                raise CorpusError(
                    f"{file.path}: text has no column {self.column!r}; name columns of .jsonl, "
                    ".json and .parquet only"
                )
            if file.format == "parquet":
                check_installed("pyarrow", f"{file.path} (Parquet)")

    @property
    def n_bytes_hint(self) -> int | None:
        """Size on disk, if all files are plain text."""
        if not all(file.is_text and file.compression is None for file in self.files):
            return None
        return sum(file.path.stat().st_size for file in self.files if file.path.exists())

    def read(self, threads: int = 1) -> Iterator[Documents]:
        """Documents file by file, in order."""
        if self.unit == "line":
            for file in self.files:
                yield from self._read_file(file, threads)
            return
        for is_text, files in groupby(self.files, key=lambda file: file.is_text):
            if is_text:  # together: a folder of code has thousands of small files
                whole = (read_whole(file, self.errors) for file in files)
                yield from pack((text.removeprefix(BYTE_ORDER_MARK) for text in whole), self.name)
            else:
                for file in files:
                    yield from self._read_file(file, threads)

    def _read_file(self, file: File, threads: int) -> Iterator[Documents]:
        source = str(file.path)
        if file.format == "txt":
            yield from read_lines(read_blocks(file), source, self.errors, threads=threads)
        elif file.format == "jsonl":
            blocks = read_blocks(file)
            yield from pack(read_json_lines(blocks, source, self.column, self.errors), source)
        elif file.format == "json":
            data = read_whole(file, self.errors)
            yield from pack(read_json(data, source, self.column), source)
        else:
            yield from pack(read_parquet(file, self.column), source)


@dataclass(frozen=True, slots=True)
class HubSource:
    """A data set of the Hugging Face Hub."""

    dataset: HubDataset
    n_bytes_hint: int | None = None

    def __post_init__(self) -> None:
        check_installed("datasets", f"{self.name} (a data set of the Hub)")

    @property
    def name(self) -> str:
        """The spec, spelt out."""
        return str(self.dataset)

    def read(self, threads: int = 1) -> Iterator[Documents]:  # noqa: ARG002 - a Source
        """Rows, streamed from the Hub in every pass."""
        yield from pack(read_hub(self.dataset), self.name)


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """Files in the storage of a cluster, which its engine reads; this process does not."""

    name: str  # URI of a file, a folder or a glob
    unit: DocumentUnit = "line"
    column: str | None = None
    errors: TextErrors = "strict"
    n_bytes_hint: int | None = None

    def read(self, threads: int = 1) -> Iterator[Documents]:  # noqa: ARG002 - a Source
        """CorpusError."""
        raise CorpusError(
            f"{self.name} can be read by a cluster alone: vocabshift count --engine spark; or "
            "mount it or copy it, and name its path"
        )


class StandardInputSource:
    """Text lines from standard input, kept in a temporary file from the first pass on."""

    name = "standard input"
    n_bytes_hint = None

    def __init__(self, unit: DocumentUnit = "line", errors: TextErrors = "strict") -> None:
        self._unit, self._errors = unit, errors
        self._spooled: IO[bytes] | None = None

    def read(self, threads: int = 1) -> Iterator[Documents]:
        """Lines, or all of it as one document."""
        if self._spooled is None:
            self._spooled = self._spool()
        if self._unit == "line":
            blocks = mapped_blocks(self._spooled)
            yield from read_lines(blocks, self.name, self._errors, threads=threads)
            return
        self._spooled.seek(0)
        data = as_utf8(self._spooled.read(), self.name, self._errors)
        yield from pack([bytes(data).removeprefix(BYTE_ORDER_MARK)], self.name)

    def _spool(self) -> IO[bytes]:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise CorpusError("standard input is closed or holds no bytes; pipe text into it")
        spooled = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this source
        weakref.finalize(self, spooled.close)
        shutil.copyfileobj(stream, spooled)
        spooled.flush()
        return spooled


@dataclass(frozen=True, slots=True)
class TextsSource:
    """Strings in memory, each a document."""

    name: str
    texts: Iterable[str]  # can be iterated again and again
    n_bytes_hint: int | None = None

    def read(self, threads: int = 1) -> Iterator[Documents]:  # noqa: ARG002 - a Source
        """The strings, encoded."""
        yield from pack(self._encoded(), self.name)

    def _encoded(self) -> Iterator[bytes]:
        for number, text in enumerate(self.texts):
            if not isinstance(text, str):
                raise TypeError(
                    f"{self.name}: item {number} is {type(text).__name__}; each text must be a str"
                )
            yield encode_text(text, f"{self.name}, item {number}")


# A key by which a later process recognises the text of a run.
#
# A file is identified by path, size and modification time, like in `make`: hashing a corpus would
# take as long as the first phase of a run.


def input_key(corpus: Corpus) -> str | None:
    """Hex digits that change with the files, labels, weights, choices and units of `corpus`.

    None if a part is not a local file; `no_key_reason` says why.
    """
    if no_key_reason(corpus) is not None:
        return None
    facts = json.dumps([_facts(part) for part in corpus.parts], ensure_ascii=False)
    return hashlib.sha256(facts.encode()).hexdigest()


def no_key_reason(corpus: Corpus) -> str | None:
    """The reason why a later run cannot recognise this corpus; None if it can."""
    for part in corpus.parts:
        if isinstance(part.source, StandardInputSource):
            return "standard input is gone when the process ends"
        if isinstance(part.source, HubSource):
            return f"{part.source.name} may change on the Hub from one run to the next"
        if not isinstance(part.source, FileSource):
            return f"{part.source.name} lie in memory only"
    return None


def _facts(part: Part) -> list[Any]:
    assert isinstance(part.source, FileSource)
    files = [_file_facts(file) for file in part.source.files]
    source = [part.source.unit, part.source.column, files]
    if part.source.errors != "strict":  # not in the key of older runs
        source.append(part.source.errors)
    return [part.language, part.weight, *source, *(choice.facts for choice in part.choices)]


def _file_facts(file: File) -> list[Any]:
    state = file.path.stat()
    # surrogateescape: a file name need not be UTF-8
    path = str(file.path.resolve()).encode("utf-8", "surrogateescape").hex()
    return [path, file.format, file.compression, state.st_size, state.st_mtime_ns]
