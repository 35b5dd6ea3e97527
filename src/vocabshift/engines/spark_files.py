"""Which files of a corpus Spark reads, and which it would read in another way than this package.

Spark reads lines and Parquet; what is in a line is parsed by `BatchCorpus`. Knows no pyspark.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from vocabshift.errors import CorpusError
from vocabshift.text.files import File, file_at, read_chunks
from vocabshift.text.readers import FileSource, RemoteSource
from vocabshift.text.records import missing_column
from vocabshift.text.selection import Part


@dataclass(frozen=True)
class SparkFiles:
    """Files of one part and one format, which one DataFrame reads."""

    format: str  # txt, jsonl or parquet
    paths: tuple[str, ...]
    is_whole: bool = False  # a text file is one document


def files_of(part: Part) -> list[SparkFiles]:
    """What Spark is to read for a part; CorpusError for what it cannot."""
    source = part.source
    if part.choices:
        raise CorpusError(
            f"{part.name}: --engine spark counts all documents; choose among them before, or leave "
            "--max-roman-words and --language-bytes out"
        )
    if isinstance(source, RemoteSource):
        file = file_at(source.name) or File(Path(source.name), "parquet")
        _check(file, source.name)
        return [SparkFiles(file.format, (source.name,), source.unit == "file" and file.is_text)]
    if not isinstance(source, FileSource):
        raise CorpusError(f"{part.name}: Spark reads files; save it to one first")
    for file in source.files:
        _check(file, str(file.path))
        if file.format == "parquet":
            _check_column(file, source.column or "text")
    by_format = sorted(source.files, key=lambda file: file.format)
    return [
        SparkFiles(
            name,
            tuple(_literal(file.path) for file in files),
            source.unit == "file" and name == "txt",
        )
        for name, files in groupby(by_format, key=lambda file: file.format)
    ]


def _check(file: File, name: str) -> None:
    """CorpusError for a file that Spark does not read, or not as this package does."""
    is_packed = file.compression is not None
    # Spark knows .gz in small letters alone, and would read the packed bytes.
    if file.format == "json" or (
        is_packed and (file.format == "parquet" or not file.path.name.endswith(".gz"))
    ):
        raise CorpusError(
            f"{name}: Spark reads .parquet, .txt and .jsonl, the last two also .gz; convert it, or "
            "count it without --engine spark"
        )
    if file.path.name.startswith(("_", ".")):
        raise CorpusError(f"{name}: Spark skips names that begin with _ or .; rename it")
    if not file.is_text or not file.path.is_file():
        return
    if next(read_chunks(file), b"").startswith(b"\xef\xbb\xbf"):
        raise CorpusError(f"{name}: Spark drops the byte order mark of a text file; remove it")
    if is_packed:
        return  # the end is known only after reading all
    with file.path.open("rb") as stream:
        stream.seek(-min(1, os.fstat(stream.fileno()).st_size), os.SEEK_END)
        tail = stream.read(1)
    if tail == b"\r":
        raise CorpusError(f"{name}: ends with \\r, which Spark takes for a line end; remove it")


def _check_column(file: File, column: str) -> None:
    """CorpusError for a file that lacks the column: Spark would read nulls in its place."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        present = pq.read_schema(file.path).names
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{file.path}: no Parquet ({' '.join(str(error).split())})") from error
    if column not in present:
        raise missing_column(column, present, str(file.path))


def _literal(path: Path) -> str:
    """A path as Spark reads it, which takes {}[]*? for a glob."""
    path = path.parent.resolve() / path.name  # the name of a link decides how it is unpacked
    return "file://" + re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))
