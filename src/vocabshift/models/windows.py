"""Windows of documents: stretches that fit a causal model, and batches of them.

A document longer than the context is cut into windows that overlap; a later window repeats the last
tokens of the one before as context. Knows nothing of what is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.models.load import positions_of

MOST_CONTEXT = 4096
"""Tokens of context unless asked otherwise, where a model has more positions: what a batch of one
window needs grows with it, and few documents are longer."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a document that fits the model; its first `n_context` ids are not scored."""

    document: int
    ids: NDArray[np.int64]
    n_context: int
    start: int  # token of the document that it begins with, after the BOS


def window_sizes(
    model: Any, context: int | None, overlap: int | None, *, n_prefix: int
) -> tuple[int, int]:
    """The context and the overlap to use; ValueError for impossible ones.

    `n_prefix`: tokens that each window begins with, 1 for a BOS.
    """
    positions = positions_of(model)
    if context is None:
        context = min(positions or MOST_CONTEXT, MOST_CONTEXT)
    if positions is not None and context > positions:
        raise ValueError(
            f"context is {context} and the model has {positions} positions; choose a shorter one"
        )
    if overlap is None:
        overlap = context // 2
    if not 1 <= overlap < context - n_prefix:
        raise ValueError(
            f"overlap is {overlap}; it must be at least 1 and leave room in a context of {context}"
        )
    return context, overlap


def window_starts(n_tokens: int, context: int, overlap: int, *, n_prefix: int) -> range:
    """The tokens of a document with which its windows begin."""
    return range(0, max(n_tokens - overlap, 1), context - n_prefix - overlap)


def windows_of(
    document: int,
    ids: NDArray[np.int32],
    bos: int | None,
    context: int,
    overlap: int,
    *,
    starts: Iterable[int] | None = None,
) -> Iterator[Window]:
    """The windows of a document, each after the BOS if there is one; `ids` (n,) of its tokens.

    `starts`: only those that begin with these tokens, of `window_starts`.
    """
    prefix = np.array([] if bos is None else [bos], dtype=np.int64)
    room = context - prefix.size
    if starts is None:
        starts = window_starts(len(ids), context, overlap, n_prefix=prefix.size)
    for at in starts:
        stretch = np.concatenate([prefix, ids[at : at + room].astype(np.int64)])
        if stretch.size > 1:  # a lone token without BOS has no probability
            yield Window(document, stretch, prefix.size + (overlap if at else 0), at)


def batches_of(windows: Sequence[Window], batch_tokens: int) -> Iterator[list[Window]]:
    """Windows by falling length, so that padding is short and a lack of memory shows at once."""
    batch: list[Window] = []
    for window in sorted(windows, key=lambda window: -window.ids.size):
        if batch and (len(batch) + 1) * batch[0].ids.size > batch_tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def padded(batch: Sequence[Window], model: Any) -> tuple[Any, Any]:
    """Ids and attention mask of windows for a model, int64 tensors (len(batch), longest).

    Padding is on the right, where a causal model cannot see it.
    """
    import torch

    width = max(window.ids.size for window in batch)
    ids = np.zeros((len(batch), width), dtype=np.int64)
    for row, window in enumerate(batch):
        ids[row, : window.ids.size] = window.ids
    lengths = np.array([window.ids.size for window in batch])
    mask = (np.arange(width) < lengths[:, None]).astype(np.int64)
    device = model.get_input_embeddings().weight.device
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
