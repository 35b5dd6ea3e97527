"""How much do two segmentations of the same text differ?

For tokenizers with the same ids that differ in their boundaries or merges. Owns the comparison,
token by token and place by place, and the sample that it is made on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from vocabshift.text.corpus import Corpus
from vocabshift.text.languages import UNLABELLED
from vocabshift.tokenizer.any_tokenizer import Ids, Offsets
from vocabshift.tokenizer.token_bytes import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer

SAMPLE_BYTES = 1 << 20
"""Of each language, from its beginning."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How much two segmentations of the same documents differ."""

    documents: int
    changed_documents: int
    tokens: int  # of the first segmentation
    changed_tokens: int  # of these, not in the second at the same place

    @property
    def shares(self) -> tuple[float, float]:
        """Changed documents and tokens, as shares of all."""
        return (
            self.changed_documents / max(self.documents, 1),
            self.changed_tokens / max(self.tokens, 1),
        )

    @classmethod
    def total(cls, drifts: Iterable[Drift]) -> Drift:
        """All of them as one."""
        rows = [(d.documents, d.changed_documents, d.tokens, d.changed_tokens) for d in drifts]
        return cls(*(sum(row[i] for row in rows) for i in range(4)))


def drift(
    before: tuple[Ids, Offsets], after: tuple[Ids, Offsets], lengths: NDArray[np.int64]
) -> Drift:
    """Compare two segmentations, given as flat ids and offsets (n_documents + 1,).

    `lengths`: bytes of each token, by id; the same for both.
    """
    ids, offsets = before
    kept = np.isin(_placed(ids, lengths), _placed(after[0], lengths), assume_unique=True)
    changed = np.flatnonzero(~kept)
    documents = np.unique(np.searchsorted(offsets, changed, side="right"))
    return Drift(len(offsets) - 1, len(documents), len(ids), len(changed))


def token_lengths(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Bytes of each token by id, those of special tokens as written in text."""
    lengths = np.zeros(tokenizer.row_count, dtype=np.int64)
    for token_id, data in token_bytes(tokenizer).items():
        lengths[token_id] = len(data)
    for token in tokenizer.added_tokens:
        lengths[token.id] = len(token.content.encode())
    return lengths


def sample(corpus: Corpus, n_bytes: int = SAMPLE_BYTES) -> dict[str, list[str]]:
    """The first documents of each language, by label; no source is read further than that."""
    texts: dict[str, list[str]] = {}
    left: dict[str, int] = {}
    for part in corpus.parts:
        label = part.language or UNLABELLED
        left.setdefault(label, n_bytes)
        texts.setdefault(label, [])
        if left[label] <= 0:
            continue
        for text in chain.from_iterable(batch.texts() for batch in part.read()):
            texts[label].append(text[: left[label]])
            left[label] -= len(texts[label][-1].encode())
            if left[label] <= 0:
                break
    return texts


def _placed(ids: Ids, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each token with the place where it begins, as one number."""
    sizes = lengths[ids]
    begins: NDArray[np.int64] = np.cumsum(sizes) - sizes
    return begins << 24 | ids  # ids are below 2 ** 24 (tokenizer.model.MAX_ID)
