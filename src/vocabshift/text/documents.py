"""Documents: a block of UTF-8 text and where its documents lie in it.

The unit in which a corpus is read. Owns the value and how loose texts are packed into it; knows
nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 16 << 20
"""Aim for the size of a block; a longer document makes a longer block."""

_BLOCK_DOCUMENTS = 1 << 18  # each packed text costs an object of its own until it is joined


@dataclass(frozen=True, eq=False, slots=True)
class Documents:
    """Some documents of one source, none of them empty."""

    data: bytes | memoryview  # valid UTF-8
    starts: NDArray[np.int64]  # (n,) offsets into data, in bytes
    ends: NDArray[np.int64]  # (n,) exclusive; what lies between documents belongs to none
    language: str | None = None  # label as the user wrote it
    weight: float = 1.0  # how often each document counts; above 0
    source: str = "texts"  # for messages: the file, data set or "standard input"

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.starts)

    @property
    def n_bytes(self) -> int:
        """Bytes of all documents, line ends between them left out."""
        return int((self.ends - self.starts).sum())

    def where(self, is_taken: NDArray[np.bool_]) -> Documents:
        """Those for which (n,) `is_taken` holds."""
        return replace(self, starts=self.starts[is_taken], ends=self.ends[is_taken])

    def texts(self) -> Iterator[str]:
        """The documents as strings."""
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield str(self.data[start:end], "utf-8")


def pack(
    texts: Iterable[bytes], source: str, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[Documents]:
    """Join `texts` (each one document, UTF-8) into blocks; empty ones carry nothing and go."""
    waiting: list[bytes] = []
    n_bytes = 0
    for text in texts:
        if not text:
            continue
        waiting.append(text)
        n_bytes += len(text)
        if n_bytes >= block_bytes or len(waiting) >= _BLOCK_DOCUMENTS:
            yield _joined(waiting, source)
            waiting, n_bytes = [], 0
    if waiting:
        yield _joined(waiting, source)


def _joined(texts: list[bytes], source: str) -> Documents:
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    ends = np.cumsum(lengths)
    return Documents(b"".join(texts), ends - lengths, ends, source=source)
