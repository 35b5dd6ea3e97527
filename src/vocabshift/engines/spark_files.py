"""Which files of a corpus Spark reads, and which it would read in another way than this package.

Spark reads lines and Parquet; what is in a line is parsed by `BatchCorpus`. Knows no pyspark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from vocabshift.errors import CorpusError
from vocabshift.text.documents import BYTE_ORDER_MARK
from vocabshift.text.files import File, file_at, read_chunks
from vocabshift.text.readers import FileSource, RemoteSource
from vocabshift.text.records import check_column
from vocabshift.text.selection import Part


@dataclass(frozen=True)
class SparkFiles:
    """Files of one part and one format, which one DataFrame reads."""

    format: str  # txt, jsonl or parquet
    paths: tuple[str, ...]
    is_whole: bool = False  # a text file is one document


def files_of(part: Part, language_column: str | None = None) -> list[SparkFiles]:
    """What Spark is to read for a part; CorpusError for what it cannot.

    language_column: of Parquet, if the part has no language.
    """
    source = part.source
    if part.choices:
        raise CorpusError(
            f"{part.name}: --engine spark counts all documents; choose among them before, or leave "
            "--max-roman-words and --language-bytes out"
        )
    if isinstance(source, RemoteSource):
        file = file_at(source.name) or File(Path(source.name), "parquet")
        _check(file, source.name, source.unit == "file")
        return [SparkFiles(file.format, (source.name,), source.unit == "file" and file.is_text)]
    if not isinstance(source, FileSource):
        raise CorpusError(f"{part.name}: Spark reads files; save it to one first")
    columns = [source.column or "text"]
    if part.language is None and language_column is not None:
        columns.append(language_column)
    for file in source.files:
        _check(file, str(file.path), source.unit == "file")
        if file.format == "parquet":
            _check_columns(file, columns)
    by_format = sorted(source.files, key=lambda file: file.format)
    return [
        SparkFiles(
            name,
            tuple(_literal(file.path) for file in files),
            source.unit == "file" and name == "txt",
        )
        for name, files in groupby(by_format, key=lambda file: file.format)
    ]


def _check(file: File, name: str, is_whole: bool) -> None:
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
    if ":" in file.path.name and file.path.is_file():
        raise CorpusError(f"{name}: Spark cannot read a file with a colon in its name; rename it")
    if not file.is_text or not file.path.is_file():
        return
    if is_whole and next(read_chunks(file), b"").startswith(BYTE_ORDER_MARK):
        raise CorpusError(f"{name}: Spark keeps the byte order mark of a whole file; remove it")
    if is_packed:
        return  # the end is known only after reading all
    with file.path.open("rb") as stream:
        stream.seek(-min(1, os.fstat(stream.fileno()).st_size), os.SEEK_END)
        tail = stream.read(1)
    if tail == b"\r":
        raise CorpusError(f"{name}: ends with \\r, which Spark takes for a line end; remove it")


def _check_columns(file: File, columns: Sequence[str]) -> None:
    """CorpusError for a column that is missing or no text: Spark looks at one of the files, and
    would read nulls where another lacks it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(file.path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{file.path}: no Parquet ({' '.join(str(error).split())})") from error
    for column in columns:
        check_column(column, schema.names, str(file.path))
        kind = schema.types[schema.names.index(column)]
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if plain not in (pa.string(), pa.large_string(), pa.string_view()):
            raise CorpusError(
                f"{file.path}: column {column!r} is {kind}, and text is needed; cast it"
            )


def _literal(path: Path) -> str:
    """A path as Spark reads it, which takes {}[]*? for a glob."""
    path = path.parent.resolve() / path.name  # the name of a link decides how it is unpacked
    return "file://" + re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))
