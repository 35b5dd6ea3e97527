"""PackedIds: a folder of token ids ready for training, read without copying.

Owns `packed.json` and how documents and tokens are found across shards. `vocabshift encode` and
`pack_corpus` write such folders; `packed_shards` owns the files of a shard.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.packed_shards import (
    FORMATS,
    Shard,
    StoredIds,
    check_files,
    check_ids,
    file_names,
    open_shard,
    read_header,
)
from vocabshift.cpt.packing import PADDING, PlacedDocuments, document_ends, row_bytes
from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer

FILE = "packed.json"
VERSION = 1

_COUNTS = ("n_documents", "n_tokens", "n_bytes")


class PackedIds:
    """Consecutive documents of token ids, mapped from disk.

    A document ends with its EOS, if the folder was made with one. The arrays returned are read-only
    views of the files, uint16 or uint32 (int32 in Megatron's files).
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], shards: Sequence[Shard]) -> None:
        """The shards of a folder whose `packed.json` says `header`; see `open`."""
        self.folder = folder
        self.header = header
        self.dtype = np.dtype(header["dtype"]).newbyteorder("<")
        tokenizer = header["tokenizer"]
        self.fingerprint: str = tokenizer["fingerprint"]  # of the tokenizer
        self.n_ids: int = tokenizer["n_ids"]  # every id is below
        eos = header["eos"]
        self.eos_id: int | None = None if eos is None else eos["id"]
        self._shards = shards
        starts = {name: [0, *accumulate(s[name] for s in header["shards"])] for name in _COUNTS}
        self._first_document: list[int] = starts["n_documents"]
        self._first_token: list[int] = starts["n_tokens"]
        for name in _COUNTS:
            if starts[name][-1] != header[name]:
                raise CorpusError(f"{folder / FILE}: {name} is not the sum over the shards")
        self.n_tokens = self._first_token[-1]
        self.n_bytes: int = header["n_bytes"]  # of the text

    @classmethod
    def open(cls, folder: str | Path, *, checksums: bool = True) -> PackedIds:
        """Open and check a folder; CorpusError where anything in it is missing or damaged.

        Every byte is read once, at disk speed, and compared with the checksums; with
        `checksums=False` only sizes, shapes and offsets are checked.
        """
        path = Path(folder)
        header = read_header(path / FILE, "packed ids", "make some with vocabshift encode")
        _check_header(path / FILE, header)
        dtype = np.dtype(header["dtype"]).newbyteorder("<")
        shards = []
        for number, facts in enumerate(header["shards"]):
            counts = {name: facts[name] for name in _COUNTS}
            if checksums:  # first, so that no damaged file is interpreted
                check_files(path, facts["crc32"])
            shard = open_shard(path, number, header["format"], dtype, **counts)
            if checksums:
                check_ids(path, shard, header["tokenizer"]["n_ids"])
            shards.append(shard)
        return cls(path, header, shards)

    def require(self, tokenizer: AnyTokenizer) -> None:
        """VocabMismatchError unless the ids are those of this tokenizer."""
        if tokenizer.fingerprint != self.fingerprint:
            raise VocabMismatchError(
                f"{self.folder} was packed with another tokenizer "
                f"({self.header['tokenizer'].get('name')}); pack the corpus again with this one"
            )

    def __len__(self) -> int:
        """Number of documents."""
        return self._first_document[-1]

    def document(self, index: int) -> StoredIds:
        """Ids of a document, its EOS included, shape (n_tokens,); no copy."""
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        number = bisect_right(self._first_document, index) - 1
        shard, at = self._shards[number], index - self._first_document[number]
        return shard.ids[shard.offsets[at] : shard.offsets[at + 1]]

    def tokens(self, start: int, stop: int) -> StoredIds:
        """Ids [start, stop) of all documents as one stream; copied only across shards."""
        if not 0 <= start <= stop <= self.n_tokens:
            raise IndexError(f"tokens [{start}, {stop}) of {self.n_tokens}")
        number = max(bisect_right(self._first_token, start) - 1, 0)
        parts = []
        while start < stop:
            first, end = self._first_token[number : number + 2]
            parts.append(self._shards[number].ids[start - first : min(stop, end) - first])
            start, number = min(stop, end), number + 1
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=self.dtype)

    def blocks(self, length: int) -> Iterator[StoredIds]:
        """The stream in blocks of `length` inputs: tokens [i * length, (i + 1) * length].

        A block holds one token more, the first of the next: inputs are `block[:-1]`, targets
        `block[1:]`. The last one may be shorter.
        """
        if length < 1:
            raise ValueError(f"a block of {length} tokens; at least 1 is needed")
        for start in range(0, self.n_tokens - 1, length):
            yield self.tokens(start, min(start + length + 1, self.n_tokens))

    @property
    def document_bytes(self) -> NDArray[np.int64]:
        """Bytes of text of each document, shape (n_documents,)."""
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(np.diff(shard.byte_offsets) for shard in self._shards)]
        )

    @property
    def document_tokens(self) -> NDArray[np.int64]:
        """Ids of each document without its EOS, shape (n_documents,)."""
        n_eos = 0 if self.eos_id is None else 1
        return np.concatenate(
            [
                np.zeros(0, dtype=np.int64),
                *(np.diff(shard.offsets) - n_eos for shard in self._shards),
            ]
        )

    def gather(
        self, indexes: Sequence[int] | NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Flat ids of these documents without their EOS, and offsets, as an encoder gives them."""
        n_eos = 0 if self.eos_id is None else 1
        parts = [self.document(int(index)) for index in indexes]
        parts = [part[: len(part) - n_eos] for part in parts]
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        flat = np.concatenate([np.zeros(0, self.dtype), *parts])
        return flat.astype(np.int32), offsets

    def __repr__(self) -> str:
        return f"PackedIds({str(self.folder)!r}, {len(self)} documents, {self.n_tokens} tokens)"


def _check_header(file: Path, header: Any) -> None:
    """Raise CorpusError unless `packed.json` has every key, each of the right type."""
    wrong = f"{file} is damaged, or of another version of vocabshift; make the folder again"
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise CorpusError(wrong)
    try:
        shards, eos, tokenizer = header["shards"], header["eos"], header["tokenizer"]
        counts = [table[name] for table in (header, *shards) for name in _COUNTS]
        counts += [tokenizer["n_ids"], *([] if eos is None else [eos["id"]])]
        names = [
            set(shard["crc32"]) == set(file_names(number, header["format"]))
            for number, shard in enumerate(shards)
        ]
        is_right = (
            header["format"] in FORMATS
            and header["dtype"] in ("uint16", "uint32", "int32")
            and isinstance(tokenizer["fingerprint"], str)
            and all(type(count) is int and count >= 0 for count in counts)
            and all(names)
            and bool(names)
        )
    except (KeyError, TypeError, AttributeError):
        is_right = False
    if not is_right:
        raise CorpusError(wrong)


class MappedRows:
    """Rows of `length + 1` ids of some documents of a folder, joined by `separator`.

    They equal those of `packing.pack_ids` to the last id, but are read from disk when needed:
    memory grows with the number of documents, not of tokens.
    """

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
        self._n_eos = 0 if packed.eos_id is None else 1
        self._ends = document_ends(packed.document_tokens[chosen], len(separator))
        self.row_bytes = row_bytes(self._ends, packed.document_bytes[chosen], length)

    @property
    def documents(self) -> PlacedDocuments:
        """Where the documents are in the rows."""
        return PlacedDocuments(
            indexes=self._chosen,
            n_bytes=self._packed.document_bytes[self._chosen],
            ends=self._ends,
            n_between=len(self._separator),
            ids=self._ids,
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of raw text in all rows."""
        return int(self.row_bytes.sum())

    def _ids(self, number: int) -> StoredIds:
        ids = self._packed.document(int(self._chosen[number]))
        return ids[: len(ids) - self._n_eos]

    def take(self, indexes: NDArray[np.int64]) -> NDArray[np.int32]:
        """These rows, shape (len(indexes), length + 1); PADDING after the end of the stream."""
        rows = np.full((len(indexes), self._length + 1), PADDING, dtype=np.int32)
        for row, index in zip(rows, indexes.tolist(), strict=True):
            start = index * self._length
            ids = self._stream(start, min(start + self._length + 1, int(self._ends[-1])))
            row[: len(ids)] = ids
        return rows

    def _stream(self, start: int, stop: int) -> NDArray[np.int32]:
        """Ids [start, stop) of all documents, separators included."""
        at = int(np.searchsorted(self._ends, start, side="right")) - 1
        pieces = [self._separator[start:stop]] if at < 0 else []
        at = max(at, 0)
        while at < len(self._chosen) and self._ends[at] < stop:
            begin, end = self._ends[at : at + 2].tolist()
            # Slice before copying: else each row of a book would copy the whole book.
            inside = slice(max(start - begin, 0), stop - begin)
            pieces.append(self._ids(at)[inside].astype(np.int32))
            border = end - len(self._separator)
            pieces.append(self._separator[max(start - border, 0) : max(stop - border, 0)])
            at += 1
        return np.concatenate(pieces)
