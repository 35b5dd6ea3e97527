"""Reads Parquet batch by batch, in memory that does not depend on what a file claims.

Owns how much the pages of a file unpack to. pyarrow unpacks one page at a time, to what its header
says, and then makes rows of values, as many as one asks for at once. The sizes at the end of the
file are not read for either.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

from vocabshift.errors import CorpusError

_MOST_PAGE_BYTES = 1 << 30
_BATCH_BYTES = 64 << 20
"""That a column of a batch may take: a small file may repeat one value in all rows. pyarrow holds
two to three times as much, with the batch before and the room into which a batch grows."""


def bounded_batches(
    opened: str | IO[bytes], source: str, table: Any, columns: list[str], most_rows: int
) -> Iterator[Any]:
    """Batches of at most `most_rows` of a pyarrow ParquetFile of flat columns, in which no column
    holds more than 64 MB, the pages of the first and the last row aside.

    opened: the file. CorpusError for pages of more than 1 GiB, and for what are no pages.
    """
    for number in range(table.metadata.num_row_groups):
        group, rows = table.metadata.row_group(number), most_rows
        with Path(opened).open("rb") if isinstance(opened, str) else nullcontext(opened) as stream:
            try:
                for chunk in map(group.column, range(group.num_columns)):
                    name = chunk.path_in_schema
                    if name in columns and "BYTE_ARRAY" in chunk.physical_type:
                        pages = list(_pages(stream, chunk))  # all, before any is unpacked
                        longest = partial(_longest_entry, opened, number, name)
                        rows = min(rows, _rows_within(pages, most_rows, longest))
            except (LookupError, RecursionError, TypeError, ValueError) as error:
                why = str(error) if isinstance(error, ValueError) else "no header of a page"
                raise CorpusError(
                    f"{source}: damaged Parquet ({why}); write the file anew"
                ) from error
        yield from table.iter_batches(rows, row_groups=[number], columns=columns)


def _rows_within(
    pages: Iterable[tuple[int, int, bool]], most: int, longest_entry: Callable[[int], int]
) -> int:
    """The most rows for which the pages between the first and the last hold _BATCH_BYTES."""
    n_rows, n_bytes = 0, 0
    latest: deque[tuple[int, int]] = deque()
    for rows, size, is_repeated in pages:
        if is_repeated:
            if size * most > _BATCH_BYTES:
                longest = size if rows else longest_entry(size)
                most = min(most, _BATCH_BYTES // max(1, longest))
            continue
        latest.append((rows, size))
        n_rows, n_bytes = n_rows + rows, n_bytes + size
        while n_bytes > _BATCH_BYTES:
            most = min(most, n_rows)
            first_rows, first_size = latest.popleft()
            n_rows, n_bytes = n_rows - first_rows, n_bytes - first_size
    return max(1, most)


def _longest_entry(opened: str | IO[bytes], group: int, column: str, size: int) -> int:
    """Bytes of the longest string of the dictionary of a chunk, whose page has `size` bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(opened, read_dictionary=[column]) as table:
        row = next(table.iter_batches(1, row_groups=[group], columns=[column]), None)
    entries = getattr(row and row.column(0), "dictionary", None)
    if entries is None or entries.type not in (pa.string(), pa.binary()):
        return size
    return pc.max(pc.binary_length(entries)).as_py() or 0


def _pages(stream: IO[bytes], chunk: Any) -> Iterator[tuple[int, int, bool]]:
    """Rows and bytes of each page of a chunk of a flat column, and whether rows repeat its bytes.

    They do where they name an entry of a dictionary, which has no rows of its own, or what they
    share with the row before. ValueError for pages of more than 1 GiB; LookupError,
    RecursionError or TypeError for what are no pages.
    """
    dictionary = chunk.dictionary_page_offset or chunk.data_page_offset
    at, n_rows = min(dictionary, chunk.data_page_offset), 0
    while n_rows < chunk.num_values:
        stream.seek(at)
        header = _struct(stream)
        kind, size = header[1], header[2]
        if size > _MOST_PAGE_BYTES:
            raise ValueError(f"a page of {size:,} bytes, at most {_MOST_PAGE_BYTES:,} can be")
        if kind in (0, 3):  # data, of two layouts
            page = header[5 if kind == 0 else 8]
            encoding = page[2 if kind == 0 else 4]
            n_rows += page[1]
            is_number = encoding in (2, 8)  # of an entry of the dictionary
            yield page[1], 0 if is_number else size, encoding not in (0, 2, 6, 8)
        elif kind == 2:
            yield 0, size, True
        at = stream.tell() + max(header[3], 0)


def _struct(stream: IO[bytes]) -> dict[int, Any]:
    """The numbers and structs of a struct, by field."""
    found: dict[int, Any] = {}
    field = 0
    while head := stream.read(1)[0]:
        field = field + (head >> 4) if head >> 4 else _signed(stream)
        kind = head & 15
        if kind in (_INT, _STRUCT):
            found[field] = _signed(stream) if kind == _INT else _struct(stream)
        else:
            _SKIPPED[kind](stream)
    return found


def _signed(stream: IO[bytes]) -> int:
    number = _varint(stream)
    return (number >> 1) ^ -(number & 1)


def _varint(stream: IO[bytes]) -> int:
    number = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)[0]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return number & 0xFFFFFFFF


_INT, _STRUCT = 5, 12
_SKIPPED: dict[int, Callable[[IO[bytes]], object]] = {
    1: lambda _: None,
    2: lambda _: None,
    6: _varint,
    8: lambda stream: stream.seek(_varint(stream), os.SEEK_CUR),
}
"""Values of Thrift's compact protocol by type, those that a page's header may have."""
