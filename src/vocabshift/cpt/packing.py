"""Packed sequences: documents joined by a separator and cut to one length.

Owns which documents fit a budget in bytes, and how their ids are laid out in fixed-length rows.
Knows nothing of models, losses or devices. Budgets are bytes of raw text, never tokens: with the
same budget, corpus and seed, two tokenizers train on the same documents in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError

if TYPE_CHECKING:
    from vocabshift.cpt.steps import Rows

PADDING = -1
"""Marks the unused cells after the last token of the last row."""

_MOST = 10**9
"""Limit on documents over all epochs; their indexes are held in memory."""

EncodeBatch = Callable[[Sequence[str]], tuple[NDArray[np.int32], NDArray[np.int64]]]
"""Texts -> flat ids and (n_texts + 1,) offsets, as `Encoder.encode_batch` gives them."""


@dataclass(frozen=True, eq=False)
class PackedSequences:
    """Rows of token ids, each one token longer than the model's input.

    Row i is `stream[i * length : (i + 1) * length + 1]`: it shares its first token with the end
    of the row before, so that inputs are `row[:-1]`, targets are `row[1:]`, and every token of the
    stream but the first is a target exactly once.
    """

    rows: NDArray[np.int32]  # (n_rows, length + 1); PADDING after the end of the last row
    row_bytes: NDArray[np.int64]  # (n_rows,) bytes of text; a document's spread over its tokens

    @property
    def n_bytes(self) -> int:
        """Bytes of raw text in all rows."""
        return int(self.row_bytes.sum())

    def take(self, indexes: NDArray[np.int64]) -> NDArray[np.int32]:
        """These rows, shape (len(indexes), length + 1)."""
        return self.rows[indexes]

    @property
    def n_targets(self) -> int:
        """Tokens that are predicted in one pass over the rows."""
        return int((self.rows[:, 1:] != PADDING).sum())


@dataclass(frozen=True, eq=False)
class RowCopies:
    """Rows of which each occurs `n` times: row i of these is row i modulo their number.

    BERT's "duplication": every copy of a row is masked by the seed of its own index.
    """

    rows: Rows
    n: int

    @property
    def row_bytes(self) -> NDArray[np.int64]:
        """(n * n_rows,) bytes of text."""
        return np.tile(self.rows.row_bytes, self.n)

    @property
    def n_bytes(self) -> int:
        """Bytes of raw text in all copies."""
        return self.n * self.rows.n_bytes

    def take(self, indexes: NDArray[np.int64]) -> NDArray[np.int32]:
        """These rows, shape (len(indexes), length + 1)."""
        return self.rows.take(indexes % len(self.rows.row_bytes))


def take(texts: Sequence[str], n_bytes: int, *, seed: int = 0) -> list[str]:
    """Documents in shuffled order until they hold `n_bytes` of UTF-8 or more.

    Every epoch over `texts` has its own order, drawn from `seed`; the document that crosses the
    budget is taken whole. CorpusError if there is no text.
    """
    lengths = [len(text.encode("utf-8")) for text in texts]
    return [texts[index] for index in draw(lengths, n_bytes, seed=seed).tolist()]


def draw(
    lengths: Sequence[int] | NDArray[np.int64], n_bytes: int, *, seed: int = 0
) -> NDArray[np.int64]:
    """Like `take`, from the lengths in bytes alone; returns indexes of documents."""
    if n_bytes < 1:
        raise ValueError(f"n_bytes is {n_bytes}; a budget of at least 1 byte of text is needed")
    sizes = np.asarray(lengths, dtype=np.int64)
    if not sizes.any():
        raise CorpusError("the corpus holds no text to train on; name files that are not empty")
    n_rounds = n_bytes // int(sizes.sum())
    if n_rounds * len(sizes) > _MOST and n_rounds > 1:
        raise ValueError(
            f"n_bytes is {n_bytes:,}, {n_rounds:,} rounds over a corpus of {int(sizes.sum()):,} "
            "bytes; lower the budget or give more text"
        )
    generator = np.random.default_rng(seed)
    taken = []
    left = n_bytes
    while left > 0:
        order = generator.permutation(len(sizes))
        order = order[sizes[order] > 0]
        total = np.cumsum(sizes[order])
        taken.append(order[: int(np.searchsorted(total, left)) + 1])
        left -= int(total[-1])
    return np.concatenate(taken)


def pack(
    texts: Sequence[str], encode_batch: EncodeBatch, *, separator: Iterable[int], length: int
) -> PackedSequences:
    """Join the ids of `texts` with `separator`, before, between and after them, and cut to rows.

    `separator` is EOS, or EOS and BOS if a model has both, so that a document begins in training as
    it does in evaluation. `length` is the number of inputs of a row.
    """
    ids, offsets = encode_batch(texts)
    n_bytes = [len(text.encode("utf-8")) for text in texts]
    return pack_ids(ids, offsets, n_bytes, separator=separator, length=length)


def pack_ids(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    n_bytes: Sequence[int] | NDArray[np.int64],
    *,
    separator: Iterable[int],
    length: int,
) -> PackedSequences:
    """Like `pack`, for encoded documents: flat ids, offsets, and bytes of text of each."""
    if length < 2:
        raise ValueError(f"the sequence length is {length}; at least 2 tokens are needed")
    if len(offsets) < 2:
        raise CorpusError("there is no document to pack")
    between = np.asarray(list(separator), dtype=np.int32)
    if not between.size:
        raise ValueError("a separator of at least one id is needed: the model's EOS")
    pieces = [between]
    for start, end in pairwise(offsets):
        pieces += [np.asarray(ids[start:end], dtype=np.int32), between]
    stream = np.concatenate(pieces)
    n_rows = -(-(stream.size - 1) // length)
    padded = np.full(n_rows * length + 1, PADDING, dtype=np.int32)
    padded[: stream.size] = stream
    rows = np.lib.stride_tricks.sliding_window_view(padded, length + 1)[::length]
    ends = document_ends(np.diff(offsets), between.size)
    return PackedSequences(np.ascontiguousarray(rows), row_bytes(ends, n_bytes, length))


def document_ends(n_tokens: NDArray[np.int64], n_between: int) -> NDArray[np.int64]:
    """Where documents of `n_tokens` ids end in the stream, the separator after them included.

    Shape (n_documents + 1,): the first is the end of the separator before the first document.
    """
    ends: NDArray[np.int64] = n_between + np.concatenate([[0], np.cumsum(n_tokens + n_between)])
    return ends


def row_bytes(
    ends: NDArray[np.int64], n_bytes: Sequence[int] | NDArray[np.int64], length: int
) -> NDArray[np.int64]:
    """Bytes of text of each row of `length` inputs; a document's are spread over its tokens."""
    total = np.concatenate([[0], np.cumsum(n_bytes)])
    n_rows = -(-(ends[-1] - 1) // length)
    borders = np.minimum(np.arange(n_rows + 1) * length + 1, ends[-1])
    return np.diff(np.floor(np.interp(borders, ends, total)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class PlacedDocuments:
    """The documents of a stream that rows are cut from."""

    indexes: NDArray[np.int64]  # (n,) of the documents in their corpus, in the order of the stream
    n_bytes: NDArray[np.int64]  # (n,) bytes of text
    ends: NDArray[np.int64]  # (n + 1,) as `document_ends`
    n_between: int  # ids of the separator
    ids: Callable[[int], NDArray[np.integer]]  # those of the n-th document, without separators


class RowChunks(NamedTuple):
    """The chunks of packed rows (n, length + 1), by target: target i of a row is its token i + 1.

    Numpy arrays as `chunks` finds them, tensors on the model's device for the loss.
    """

    numbers: Any
    """(n, length) int64: number of the target's chunk in its row, below `length`; -1: none."""
    teacher: Any
    """(n, length) float32: at the last target of a chunk, the teacher's log-probability of the
    chunk (and, with debiasing, of a boundary after it); NaN elsewhere."""
