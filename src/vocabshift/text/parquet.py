"""Reads Parquet batch by batch, in memory that does not depend on what a file claims.

Owns how much the pages of a file unpack to. pyarrow unpacks one page at a time, to what its header
says, and then makes rows of values, as many as one asks for at once. The sizes at the end of the
file are not read for either, only where the pages are.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
    schema = map(table.schema.column, range(len(table.schema)))
    strings = {
        number: column.path
        for number, column in enumerate(schema)
        if column.path in columns and "BYTE_ARRAY" in column.physical_type
    }
    with _damage(source), _stream(opened) as stream:
        groups = [group[1, _LIST] for group in _footer(stream)[4, _LIST]]
    for number, chunks in enumerate(groups):
        rows = most_rows
        with _damage(source), _stream(opened) as stream:
            for place, column in strings.items():
                pages = list(_pages(stream, chunks[place][3, _STRUCT]))  # all, before one is read
                longest = partial(_longest_entry, opened, table.metadata, number, column)
                rows = min(rows, _rows_within(pages, most_rows, longest))
        yield from table.iter_batches(rows, row_groups=[number], columns=columns)


def _stream(opened: str | IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    return Path(opened).open("rb") if isinstance(opened, str) else nullcontext(opened)


@contextmanager
def _damage(source: str) -> Iterator[None]:
    try:
        yield
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else "a header that makes no sense"
        raise CorpusError(f"{source}: damaged Parquet ({why}); write the file anew") from error


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


def _longest_entry(
    opened: str | IO[bytes], metadata: Any, group: int, column: str, size: int
) -> int:
    """Bytes of the longest string of the dictionary of a chunk, whose page has `size` bytes.

    metadata: of the file, so that its end is not parsed again for each chunk.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(opened, metadata=metadata, read_dictionary=[column]) as table:
        row = next(table.iter_batches(1, row_groups=[group], columns=[column]), None)
    entries = getattr(row and row.column(0), "dictionary", None)
    if entries is None or entries.type not in (pa.string(), pa.binary()):
        return size
    return pc.max(pc.binary_length(entries)).as_py() or 0


# What Thrift's compact protocol holds is read here, for pyarrow says nothing of pages, and ends the
# process where it is asked about a column whose description is damaged.

_INT, _LONG, _LIST, _STRUCT = 5, 6, 9, 12
_Struct = dict[tuple[int, int], Any]
"""Values by field and type: Thrift passes over a field of another type than the one it knows."""


def _footer(stream: IO[bytes]) -> _Struct:
    """The end of a file that pyarrow has opened; fields as parquet.thrift numbers them."""
    end = stream.seek(-8, os.SEEK_END)
    stream.seek(end - int.from_bytes(stream.read(4), "little"))
    return _struct(stream)


def _pages(stream: IO[bytes], chunk: _Struct) -> Iterator[tuple[int, int, bool]]:
    """Rows and bytes of each page of a chunk of a flat column, and whether rows repeat its bytes.

    They do where they name an entry of a dictionary, which has no rows of its own, or what they
    share with the row before. ValueError for pages of more than 1 GiB; LookupError,
    RecursionError or TypeError for what are no pages.
    """
    at, n_rows = chunk[9, _LONG], 0
    at = min(chunk.get((11, _LONG)) or at, at)  # that of a dictionary
    while n_rows < chunk[5, _LONG]:
        stream.seek(at)
        header = _struct(stream)
        kind, size = header[1, _INT], header[2, _INT]
        if size > _MOST_PAGE_BYTES:
            raise ValueError(f"a page of {size:,} bytes, at most {_MOST_PAGE_BYTES:,} can be")
        if kind in (0, 3):  # data, of two layouts
            page = header[5 if kind == 0 else 8, _STRUCT]
            rows, encoding = page[1, _INT], page[2 if kind == 0 else 4, _INT]
            n_rows += rows
            is_number = encoding in (2, 8)  # of an entry of the dictionary
            yield rows, 0 if is_number else size, encoding not in (0, 2, 6, 8)
        elif kind == 2:
            yield 0, size, True
        at = stream.tell() + max(header[3, _INT], 0)


def _struct(stream: IO[bytes]) -> _Struct:
    found: _Struct = {}
    field = 0
    while head := stream.read(1)[0]:
        field = field + (head >> 4) if head >> 4 else _signed(stream)
        kind = head & 15
        found[field, kind] = None if kind in (1, 2) else _READ[kind](stream)
    return found


def _list(stream: IO[bytes]) -> list[Any]:
    head = stream.read(1)[0]
    size = head >> 4 if head >> 4 < 15 else _varint(stream)
    return [_READ[head & 15](stream) for _ in range(size)]


def _byte(stream: IO[bytes]) -> int:
    return stream.read(1)[0]


def _binary(stream: IO[bytes]) -> None:
    stream.seek(_varint(stream), os.SEEK_CUR)


def _signed(stream: IO[bytes], bits: int = 32) -> int:
    number = _varint(stream, bits)
    return (number >> 1) ^ -(number & 1)


def _varint(stream: IO[bytes], bits: int = 32) -> int:
    """As C++ reads it: what has more bits loses the highest ones."""
    number = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)[0]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return number & ((1 << bits) - 1)


_READ: dict[int, Callable[[IO[bytes]], Any]] = {
    1: _byte,  # a truth in a list
    2: _byte,
    3: _byte,
    4: _signed,
    _INT: _signed,
    _LONG: partial(_signed, bits=64),
    7: lambda stream: stream.read(8)[7],
    8: _binary,
    _LIST: _list,
    10: _list,
    _STRUCT: _struct,
}
"""Values by type."""
