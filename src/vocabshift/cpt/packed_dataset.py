"""Packed ids as the data set of a trainer: rows of ids, or rows matched with a teacher's reading.

`packed_dataset` gives a `datasets.Dataset`. Its rows are cut from the mapped files without copying:
a column of lists over each shard's ids. Only a row that lies in two shards is copied.
`MatchedDataset` has rows with the chunks of which a teacher knows the likelihoods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.chunks import MatchedRows
from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.id_files import COLUMN
from vocabshift.cpt.objectives import SpecialIds
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.cpt.packing import PADDING
from vocabshift.errors import CorpusError
from vocabshift.models.cross_entropy import IGNORED

if TYPE_CHECKING:
    import datasets

_MOST = 2**31 - 1  # tokens in a chunk of a column, whose offsets have 32 bits
LABELS, LENGTHS, POSITIONS = "labels", "seq_lengths", "position_ids"
NUMBERS, LOGPROBS = "chunk_numbers", "chunk_logprobs"


def packed_dataset(
    packed: PackedIds | str | Path, length: int, *, documents: bool = False
) -> datasets.Dataset:
    """Rows of `length` tokens of a folder that `vocabshift encode` wrote, in its order.

    packed: the folder, or opened. length: tokens of a row; the rest at the end, which is shorter
        than a row, is left out. documents: whether documents are to be kept apart.

    Columns: `input_ids`; `labels`, the same ids; and `seq_lengths`, the lengths of the documents in
    each row, which TRL's padding-free collator reads. With `documents`, rows have `position_ids`
    that start at 0 with every document (and row), which transformers takes for boundaries of
    attention, and -100 in `labels` where a document begins: no token is predicted from the document
    before. These two are made when rows are read. Everything else is mapped from the files; a token
    takes no memory. ValueError for a length below 2, CorpusError for fewer tokens than a row, or a
    damaged folder.
    """
    import datasets
    import pyarrow as pa

    if length < 2:
        raise ValueError(f"the length is {length}; at least 2 tokens are needed")
    opened = packed if isinstance(packed, PackedIds) else PackedIds.open(packed)
    n_rows = opened.n_tokens // length
    if not n_rows:
        raise CorpusError(
            f"{opened.folder} holds {opened.n_tokens} tokens, fewer than one row of {length}"
        )
    runs = list(_runs(opened, length, n_rows))
    ids = pa.chunked_array([_mapped_rows(opened, length, *run) for run in runs])
    starts, offsets = _document_starts(opened, length, n_rows)
    values = starts if documents else _lengths(starts, offsets, length)
    own = pa.chunked_array([_lists(offsets[a : b + 1], values) for a, b in runs])
    columns = {COLUMN: ids, LABELS: ids, POSITIONS if documents else LENGTHS: own}
    # Hashing the ids, as datasets would, reads them all; the header has a checksum of each file.
    key = f"{opened.header['shards']} {opened.fingerprint} {length} {documents}"
    fingerprint = datasets.fingerprint.Hasher.hash(key)
    dataset = datasets.Dataset(pa.table(columns), fingerprint=fingerprint)
    # Positions are stored as the places where documents begin; `expand` makes them of these.
    return dataset.with_transform(expand) if documents else dataset


def expand(batch: dict[str, list[Any]]) -> dict[str, list[NDArray[np.int64]]]:
    """Rows as they are read: positions of the places where documents begin, and labels."""
    found: dict[str, list[NDArray[np.int64]]] = {
        name: [np.asarray(row, dtype=np.int64) for row in rows] for name, rows in batch.items()
    }
    for row, starts in enumerate(found.get(POSITIONS, [])):
        n_tokens = len(next(iter(found[name] for name in (COLUMN, LABELS) if name in found))[row])
        places = np.arange(n_tokens, dtype=np.int64)
        found[POSITIONS][row] = places - np.repeat(starts, np.diff(starts, append=n_tokens))
        if LABELS in found:
            found[LABELS][row] = found[LABELS][row].copy()
            found[LABELS][row][starts] = IGNORED
    return found


@dataclass(frozen=True, eq=False)
class MatchedDataset:
    """Rows of one more token than the model reads, with their chunks; a map-style data set.

    A row is `input_ids` and `labels` (length + 1,), `chunk_numbers` and `chunk_logprobs` (length,).
    """

    rows: MatchedRows
    config: LoopConfig
    special: SpecialIds

    def __len__(self) -> int:
        """Rows."""
        return len(self.rows.row_bytes)

    def __getitem__(self, index: int) -> dict[str, NDArray[Any]]:
        """One row."""
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self.__getitems__([index])[0]

    def __getitems__(self, indexes: Sequence[int]) -> list[dict[str, NDArray[Any]]]:
        """Several rows, which the teacher reads together; torch's loader asks for a batch so."""
        wanted = np.asarray(indexes, dtype=np.int64)
        ids, chunks = self.rows.take(wanted).astype(np.int64), self.rows.chunks(wanted)
        labels = np.where(ids == PADDING, IGNORED, ids)
        separator = self.special.separator
        if self.config.document_attention and len(separator) > 1:
            labels[labels == separator[-1]] = IGNORED  # as `within_documents`
        names = (COLUMN, LABELS, NUMBERS, LOGPROBS)
        columns = (ids, labels, chunks.numbers, chunks.teacher)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _runs(packed: PackedIds, length: int, n_rows: int) -> Iterator[tuple[int, int]]:
    """Rows [first, stop) that lie in one shard, or one that lies in several."""
    row = 0
    most = _MOST // length
    for end in accumulate(shard["n_tokens"] for shard in packed.header["shards"]):
        while row < min(end // length, n_rows):
            yield row, (stop := min(end // length, n_rows, row + most))
            row = stop
        if row < n_rows and row * length < end:
            yield row, row + 1
            row += 1


def _mapped_rows(packed: PackedIds, length: int, first: int, stop: int) -> Any:
    """These rows as lists whose ids lie in the files, if they are in one shard."""
    import pyarrow as pa

    ids = packed.tokens(first * length, stop * length)
    kind = pa.from_numpy_dtype(ids.dtype)
    values = pa.Array.from_buffers(kind, len(ids), [None, pa.py_buffer(ids)])
    return _lists(np.arange(stop - first + 1, dtype=np.int64) * length, values)


def _lists(offsets: NDArray[np.int64], values: Any) -> Any:
    """Lists of consecutive values, from offsets[0] on."""
    import pyarrow as pa

    inside = values[int(offsets[0]) : int(offsets[-1])]
    return pa.ListArray.from_arrays((offsets - offsets[0]).astype(np.int32), inside)


def _document_starts(
    packed: PackedIds, length: int, n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places in each row at which a document begins, 0 always among them, flat and offsets."""
    n_eos = 0 if packed.eos_id is None else 1
    begins = np.cumsum(packed.document_tokens + n_eos)[:-1]
    edges = np.arange(n_rows + 1, dtype=np.int64) * length
    every = np.union1d(begins[begins < edges[-1]], edges[:-1])
    return every % length, np.searchsorted(every, edges).astype(np.int64)


def _lengths(
    starts: NDArray[np.int64], offsets: NDArray[np.int64], length: int
) -> NDArray[np.int64]:
    """The length of each document's part of its row."""
    lengths = np.diff(starts, append=0)
    lengths[offsets[1:] - 1] = length - starts[offsets[1:] - 1]
    return lengths
