"""Input embeddings, output head and its bias of a saved model as float32, read block by block.

The architecture says which tensors these are (`saved`, `tables`). They are read with numpy, one
block of rows at a time; nothing else of the model is read, and numbers that are not finite are
refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import VocabMismatchError
from vocabshift.models.folder import local_folder
from vocabshift.models.saved import SavedModel, are_equal, open_saved
from vocabshift.models.shards import Shard, StoredTensor
from vocabshift.models.tables import Table

Floats = npt.NDArray[np.float32]

_STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_BLOCK_BYTES = 16 << 20  # of a block in float32: what is done with it stays near the caches


@dataclass(frozen=True, eq=False)
class RowTable:
    """One matrix (rows, width) in a file."""

    name: str
    shard: Shard
    stored: StoredTensor

    @property
    def rows(self) -> int:
        """Rows: one for each token, and padding."""
        return self.stored.shape[0]

    @property
    def width(self) -> int:
        """Numbers in a row; 1 for a bias."""
        return self.stored.shape[1] if len(self.stored.shape) > 1 else 1

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """(first row, rows as float32), in order; the blocks may be changed."""
        length = max(1, _BLOCK_BYTES // (4 * max(self.width, 1)))
        for start in range(0, self.rows, length):
            yield start, self._read(start, min(start + length, self.rows))

    def take(self, ids: npt.NDArray[np.int64]) -> Floats:
        """The rows of some ids, (n, width); neighbours are read together."""
        if not len(ids):
            return np.zeros((0, self.width), dtype=np.float32)
        edges = (np.flatnonzero(np.diff(ids) != 1) + 1).tolist()
        runs = zip([0, *edges], [*edges, len(ids)], strict=True)
        return np.concatenate([self._read(int(ids[a]), int(ids[b - 1]) + 1) for a, b in runs])

    def digest(self, into: Any) -> None:
        """Feed the bytes as they are stored to a hash."""
        kind = np.dtype(_STORED[self.stored.dtype])
        with self.shard.file.open("rb") as stream:
            stream.seek(self.stored.start)
            left = self.rows * self.width * kind.itemsize
            while left and (data := stream.read(min(left, _BLOCK_BYTES))):
                into.update(data)
                left -= len(data)

    def _read(self, start: int, stop: int) -> Floats:
        kind = np.dtype(_STORED[self.stored.dtype])
        count = (stop - start) * self.width
        place = self.stored.start + start * self.width * kind.itemsize
        plain = np.fromfile(self.shard.file, dtype=kind, count=count, offset=place)
        if len(plain) != count:
            raise ValueError(f"{self.shard.file} became shorter while it was read")
        if self.stored.dtype == "BF16":  # the upper half of a float32
            plain = (plain.astype(np.uint32) << 16).view(np.float32)
        found = plain.astype(np.float32, copy=False).reshape(stop - start, self.width)
        if not np.isfinite(found).all():
            bad = start + int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
            raise ValueError(
                f"row {bad} of {self.name} in {self.shard.file.name} holds a number that is not "
                "finite: the model is broken there"
            )
        return found


@dataclass(frozen=True, eq=False)
class ModelTables:
    """What a model has for its tokens."""

    folder: Path
    embeddings: RowTable
    head: RowTable  # the embeddings themselves, where these are tied
    bias: RowTable | None  # of the head
    tied: bool

    def hash(self) -> str:
        """Sixteen hex digits of both tables' bytes."""
        digest = hashlib.blake2b(digest_size=8)
        self.embeddings.digest(digest)
        if not self.tied:
            self.head.digest(digest)
        return digest.hexdigest()


def open_tables(model: str | Path, n_tokens: int) -> ModelTables:
    """The tables of a model folder (or Hub name); `n_tokens`: rows that its tokenizer needs.

    ValueError for weights that are no safetensors, damaged, quantized, or of an architecture that
    transformers does not know; VocabMismatchError where they have fewer rows than the tokenizer
    has ids; FileNotFoundError where there is no model.
    """
    folder = local_folder(model)
    saved = open_saved(folder)
    if saved is None:
        raise ValueError(
            f"{folder} holds no safetensors weights, which are read without loading the model; "
            "save it with save_pretrained of transformers first"
        )
    if saved.matrices.rows < n_tokens:
        raise VocabMismatchError(
            f"the model's tokenizer has ids up to {n_tokens - 1}, and the input "
            f"embeddings of {folder} have {saved.matrices.rows} rows: they are not each other's"
        )
    embeddings, head, bias = (
        next((table for table in saved.matrices.tables if table.role == role), None)
        for role in ("input", "head", "bias")
    )
    assert embeddings is not None
    if head is not None and are_equal(embeddings, head):
        head = None  # some files hold a tied matrix twice, under a config that says untied
    rows = _row_table(saved, embeddings)
    return ModelTables(
        folder,
        embeddings=rows,
        head=rows if head is None else _row_table(saved, head),
        bias=None if bias is None else _row_table(saved, bias),
        tied=head is None,
    )


def _row_table(saved: SavedModel, table: Table) -> RowTable:
    """The table in its file, without the rows that the architecture adds to those of tokens."""
    name = table.names[0]
    shard, stored = saved.checkpoint.tensors[name]
    shape = (table.rows - table.beyond, table.weight.shape[1])
    return RowTable(name, shard, replace(stored, shape=shape))
