"""Documents from records: JSON lines, JSON files, Parquet, data sets of the Hub; Arrow strings.

A record is an object with a text column, or a string, which is the text itself. A null is skipped;
any other value is an error, as is a missing column.

A `.jsonl` is streamed; its blank lines are skipped. A `.json` is held in memory, and is one of
- a list of records;
- an object with the column: one text, or a list of texts;
- an object with exactly one list among its values, whatever its key: that list of records;
- JSON lines despite the suffix, as in many data sets.
A byte order mark before the JSON is not part of it.

Parquet files and data sets come batch by batch, of one column only. They need the extra
`vocabshift[data]`; the Hub is the only place where a corpus touches the network.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError, printable
from vocabshift.text.documents import Block, TextErrors, split_lines
from vocabshift.text.files import MOST_PACKED_BYTES, File, read_chunks
from vocabshift.text.parquet import bounded_batches
from vocabshift.text.spec import HubDataset

_DEFAULT_COLUMN = "text"
_BYTE_ORDER_MARK = "\ufeff"


def read_json_lines(
    blocks: Iterable[Block], source: str, column: str | None, errors: TextErrors = "strict"
) -> Iterator[bytes]:
    """Texts of JSON lines; a CorpusError gives the number of the bad line (from 1)."""
    for number, line in enumerate(split_lines(blocks, source, errors), start=1):
        text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if not text or text.isspace():
            continue
        where = f"{source}, line {number}"
        yield text_of_record(parse_record(text, where), column, where)


def read_json(data: bytes, source: str, column: str | None) -> Iterator[bytes]:
    """Texts of one `.json`, whose content `data` is valid UTF-8."""
    try:
        value = json.loads(data.decode().removeprefix(_BYTE_ORDER_MARK))
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise _not_json(f"{source}, line {error.lineno}", error) from error
        yield from read_json_lines([(0, data)], source, column)
        return
    except (ValueError, RecursionError) as error:
        raise _not_json(source, error) from error
    for number, record in enumerate(_records(value, source, column), start=1):
        yield text_of_record(record, column, f"{source}, record {number}")


def parse_record(text: str, where: str) -> Any:
    """The value of one line of JSON, or CorpusError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(where, error) from error


def text_of_record(record: Any, column: str | None, where: str) -> bytes:
    """The text of a record as UTF-8 (empty for null); CorpusError for what is no text."""
    if not isinstance(record, dict):
        return encode_text(record, where)
    name = column or _DEFAULT_COLUMN
    if name not in record:
        raise missing_column(name, record, where)
    return encode_text(record[name], f"{where}, column {name!r}")


def encode_text(value: Any, where: str) -> bytes:
    """A value of a text column as UTF-8 (empty for null), or CorpusError."""
    if value is None:
        return b""
    if not isinstance(value, str):
        raise CorpusError(f"{where}: {type(value).__name__} instead of text; name another column")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{where}: a lone surrogate at character {error.start}, which no UTF-8 can hold; "
            "repair the text or leave it out"
        ) from error


def check_column(column: str, present: Sequence[str], where: str) -> None:
    """CorpusError where a table lacks a column, or has two of the name."""
    if column not in present:
        raise missing_column(column, present, where)
    if present.count(column) > 1:
        raise CorpusError(f"{where}: two columns {column!r}; rename one of them")


def missing_column(column: str, present: Iterable[str], where: str) -> CorpusError:
    """The error for a missing column."""
    names = printable(", ".join(present)) or "none"
    return CorpusError(f"{where}: no column {column!r}; present: {names}; name one as FILE:COLUMN")


def _records(value: Any, source: str, column: str | None) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        name = column or _DEFAULT_COLUMN
        if name in value:
            return value[name] if isinstance(value[name], list) else [value]
        lists = [of_key for of_key in value.values() if isinstance(of_key, list)]
        if len(lists) == 1:
            return lists[0]
        raise missing_column(name, value, source)
    raise CorpusError(
        f"{source}: {type(value).__name__} where a list of records or an object is needed"
    )


def _not_json(where: str, error: Exception) -> CorpusError:
    what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return CorpusError(f"{where}: not JSON ({what})")


# Tables: Parquet files and data sets of the Hugging Face Hub.

_BATCH_ROWS = 1024
_MOST_TIMES_PACKED = 100
"""Times its size that a compressed Parquet file may unpack to: it is compressed already."""


def check_installed(package: str, what_for: str, *, extra: str = "data") -> None:
    """Raise ImportError with install instructions if `package` is missing; imports nothing."""
    if find_spec(package) is None:
        raise ImportError(
            f"{what_for} needs {package}; install it with: pip install 'vocabshift[{extra}]'",
            name=package,
        )


def read_parquet(file: File, column: str | None) -> Iterator[bytes]:
    """Texts of a Parquet file; a compressed one is first unpacked to a temporary file."""
    if file.compression is None:
        yield from _parquet_texts(str(file.path), str(file.path), column)
        return
    most = max(MOST_PACKED_BYTES, _MOST_TIMES_PACKED * file.path.stat().st_size)
    with tempfile.TemporaryFile() as unpacked:
        for chunk in read_chunks(file):
            if unpacked.tell() + len(chunk) > most:
                raise CorpusError(
                    f"{file.path}: a Parquet file of more than {most:,} bytes; if that is what it "
                    "should be, unpack the file first"
                )
            unpacked.write(chunk)
        unpacked.seek(0)
        yield from _parquet_texts(unpacked, str(file.path), column)


def read_hub(dataset: HubDataset) -> Iterator[bytes]:
    """Texts of a data set of the Hub, streamed; each pass streams it again."""
    source = str(dataset)
    batches = _hub_batches(dataset)
    number = 0
    while True:
        try:
            values = next(batches, None)
        except CorpusError:
            raise
        except Exception as error:  # the network, the Hub, the data set's own files
            why = " ".join(str(error).split()) or type(error).__name__
            raise CorpusError(f"{source}: cannot be streamed from the Hub ({why})") from error
        if values is None:
            return
        for value in values:
            number += 1
            yield encode_text(value, f"{source}, row {number}")


def _parquet_texts(opened: str | IO[bytes], source: str, column: str | None) -> Iterator[bytes]:
    import pyarrow as pa

    name = column or _DEFAULT_COLUMN
    number = 0
    try:
        for value in _parquet_values(opened, source, name):
            number += 1
            yield encode_text(value, f"{source}, row {number}, column {name!r}")
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())
        raise CorpusError(f"{source}: damaged Parquet after row {number} ({why})") from error


def _parquet_values(opened: str | IO[bytes], source: str, column: str) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(opened) as table:
        present = table.schema_arrow.names
        check_column(column, present, source)
        kind = table.schema_arrow.field(column).type
        if pa.types.is_nested(kind):  # a row has any number of values
            raise CorpusError(f"{source}, column {column!r}: {kind} instead of text; name another")
        for batch in bounded_batches(opened, source, table, [column], _BATCH_ROWS):
            yield from batch.column(0).to_pylist()


def _hub_batches(dataset: HubDataset) -> Iterator[list[Any]]:
    import datasets

    rows = datasets.load_dataset(dataset.name, dataset.config, split=dataset.split, streaming=True)
    if rows.column_names is not None:
        if dataset.column not in rows.column_names:
            raise missing_column(dataset.column, rows.column_names, str(dataset))
        rows = rows.select_columns([dataset.column])  # no image or sound is decoded in vain
    for batch in rows.iter(batch_size=_BATCH_ROWS):
        if dataset.column not in batch:
            raise missing_column(dataset.column, batch, str(dataset))
        yield batch[dataset.column]


# Arrow strings as bytes and offsets, without creating str objects. pyarrow arrays are recognised by
# their methods, so nothing is imported.

StringBlock = tuple[memoryview, NDArray[np.int64], NDArray[np.int64]]
"""UTF-8 bytes, and where each string begins and ends in them."""

_OFFSETS = {"string": np.int32, "large_string": np.int64}
_CAN_BE_CAST = ("string_view", "dictionary<values=string,", "dictionary<values=large_string,")


def string_blocks(strings: Any) -> Iterator[StringBlock]:
    """One block for each chunk of a pyarrow Array or ChunkedArray of strings.

    The bytes are those of the array, not copied. TypeError for arrays of another type, ValueError
    for nulls. Does not check that the bytes are UTF-8.
    """
    kind = str(getattr(strings, "type", type(strings).__name__))
    if kind not in _OFFSETS and not kind.startswith(_CAN_BE_CAST):
        raise TypeError(f"an Arrow {kind}; give an array of strings, as a column of a table is one")
    if strings.null_count:
        raise ValueError(
            f"{strings.null_count} of {len(strings)} texts are null; leave them out with "
            "drop_null() or make them empty with fill_null('')"
        )
    for chunk in getattr(strings, "chunks", [strings]):
        yield _block(chunk if kind in _OFFSETS else chunk.cast("large_string"))


def _block(array: Any) -> StringBlock:
    _, offsets, data = array.buffers()
    if not len(array):  # may be without buffers
        return memoryview(b""), np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = np.frombuffer(offsets, _OFFSETS[str(array.type)])
    places = places[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return memoryview(data if data is not None else b""), places[:-1], places[1:]
