"""Retrieval on parallel text: is the nearest sentence of one language the translation?

As the study's Table 21 has it (appendix F.2.1): the vector of a sentence is the mean of the model's
last hidden states; of all sentences of the reference language, that of the highest cosine is
compared with the translation. Every model can do this without training for it, so what sentences
share on paper (digits, punctuation, words in the same script) counts as well: `extrinsic.py`
measures the model before its training too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 64  # sentences

Vectors = NDArray[np.float32]
Pool = Callable[[Sequence[Sequence[int]]], Any]
"""Rows of ids -> (n, hidden), a tensor."""


def vectors(pool: Pool, rows: Sequence[Sequence[int]]) -> Vectors:
    """(n, hidden) of length 1, in the order of `rows`; those of like length are run together."""
    import torch

    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    found: dict[int, Any] = {}
    with torch.inference_mode():
        for start in range(0, len(order), AT_ONCE):
            some = order[start : start + AT_ONCE]
            of_some = torch.nn.functional.normalize(pool([rows[i] for i in some]), dim=1)
            found.update(zip(some, of_some.float().numpy(), strict=True))
    return np.stack([found[i] for i in range(len(rows))])


def hits(sources: Vectors, references: Vectors) -> list[bool]:
    """Whether the nearest of the references has the same place; of equal ones the first counts."""
    nearest = (sources @ references.T).argmax(axis=1)
    return [bool(found) for found in nearest == np.arange(len(sources))]


def retrieved(
    pool: Pool, rows: Mapping[str, Sequence[Sequence[int]]], reference: str
) -> dict[str, list[bool]]:
    """Hits of every sentence of every language but `reference`; `rows` are ids, by language."""
    of_reference = vectors(pool, rows[reference])
    return {
        language: hits(vectors(pool, own), of_reference)
        for language, own in rows.items()
        if language != reference
    }
