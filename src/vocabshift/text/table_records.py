"""Documents out of tables: Parquet files and data sets of the Hugging Face Hub.

Both come batch by batch, of one column only. Needs the extra `vocabshift[data]`; the Hub is the
only place where a corpus touches the network. A null carries no text and is passed over.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from typing import IO, Any

from vocabshift.errors import CorpusError
from vocabshift.text.compression import read_chunks
from vocabshift.text.files import File
from vocabshift.text.json_records import encode_text, missing_column
from vocabshift.text.spec import HubDataset

_BATCH_ROWS = 1024
_DEFAULT_COLUMN = "text"


def check_installed(package: str, what_for: str) -> None:
    """ImportError that says what to install where `package` is not there; imports nothing."""
    if find_spec(package) is None:
        raise ImportError(
            f"{what_for} needs {package}; install it with: pip install 'vocabshift[data]'",
            name=package,
        )


def read_parquet(file: File, column: str | None) -> Iterator[bytes]:
    """Texts of a Parquet file; a compressed one is first unpacked to a temporary file."""
    if file.compression is None:
        yield from _parquet_texts(str(file.path), str(file.path), column)
        return
    with tempfile.TemporaryFile() as unpacked:
        for chunk in read_chunks(file):
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
    batches = _parquet_batches(opened, source, name)
    number = 0
    while True:
        try:
            values = next(batches, None)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            why = " ".join(str(error).split())
            raise CorpusError(f"{source}: damaged Parquet after row {number} ({why})") from error
        if values is None:
            return
        for value in values:
            number += 1
            yield encode_text(value, f"{source}, row {number}, column {name!r}")


def _parquet_batches(opened: str | IO[bytes], source: str, column: str) -> Iterator[list[Any]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(opened) as table:
        present = table.schema_arrow.names
        if column not in present:
            raise missing_column(column, present, source)
        for batch in table.iter_batches(_BATCH_ROWS, columns=[column]):
            yield batch.column(0).to_pylist()


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
