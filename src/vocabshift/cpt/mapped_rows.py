"""The rows of a packed folder, read from disk when they are asked for.

Owns where row i of the stream lies among the documents. The rows are those of `packing.pack_ids`,
to the last id, but memory grows with the number of documents, not of tokens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.cpt.packing import PADDING, document_ends, row_bytes
from vocabshift.errors import CorpusError


class MappedRows:
    """Rows of `length + 1` ids of some documents of a folder, joined by `separator`."""

    def __init__(
        self,
        packed: PackedIds,
        chosen: NDArray[np.int64],
        *,
        separator: tuple[int, ...],
        length: int,
    ) -> None:
        """`chosen`: indexes of documents in their order, as `packing.draw` gives them."""
        if length < 2:
            raise ValueError(f"the sequence length is {length}; at least 2 tokens are needed")
        if not len(chosen):
            raise CorpusError("there is no document to pack")
        self._packed = packed
        self._chosen = chosen
        self._separator = np.asarray(separator, dtype=np.int32)
        self._length = length
        self._behind = 0 if packed.eos_id is None else 1
        self._ends = document_ends(packed.document_tokens[chosen], len(separator))
        self.row_bytes = row_bytes(self._ends, packed.document_bytes[chosen], length)

    @property
    def n_bytes(self) -> int:
        """Bytes of raw text in all rows."""
        return int(self.row_bytes.sum())

    def take(self, indexes: NDArray[np.int64]) -> NDArray[np.int32]:
        """These rows, shape (len(indexes), length + 1); PADDING behind the end of the stream."""
        rows = np.full((len(indexes), self._length + 1), PADDING, dtype=np.int32)
        for row, index in zip(rows, indexes.tolist(), strict=True):
            start = index * self._length
            ids = self._stream(start, min(start + self._length + 1, int(self._ends[-1])))
            row[: len(ids)] = ids
        return rows

    def _stream(self, start: int, stop: int) -> NDArray[np.int32]:
        """Ids [start, stop) of all documents with what stands between them."""
        at = int(np.searchsorted(self._ends, start, side="right")) - 1
        pieces = [self._separator[start:stop]] if at < 0 else []
        at = max(at, 0)
        while at < len(self._chosen) and self._ends[at] < stop:
            begin, end = self._ends[at : at + 2].tolist()
            ids = self._packed.document(int(self._chosen[at]))
            # Cut before it is copied: a book would be copied whole for each of its rows.
            inside = slice(max(start - begin, 0), stop - begin)
            pieces.append(ids[: len(ids) - self._behind][inside].astype(np.int32))
            border = end - len(self._separator)
            pieces.append(self._separator[max(start - border, 0) : max(stop - border, 0)])
            at += 1
        return np.concatenate(pieces)
