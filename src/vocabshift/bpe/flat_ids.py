"""Ids of many texts in one array, with offsets: joined, and put between a template's tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]


def join(parts: Sequence[Ids]) -> tuple[Ids, Offsets]:
    """Flat ids and offsets (n_parts + 1,) of ids by text."""
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32), offsets


def join_batches(batches: Sequence[tuple[Ids, Offsets]]) -> tuple[Ids, Offsets]:
    """One batch of several, in order; a single one is handed on as it is."""
    if len(batches) == 1:
        return batches[0]
    ids, starts = join([ids for ids, _ in batches])
    ends = [offsets[1:] + start for (_, offsets), start in zip(batches, starts[:-1], strict=True)]
    return ids, np.concatenate([np.zeros(1, np.int64), *ends])


def surround(ids: Ids, offsets: Offsets, before: Ids, after: Ids) -> tuple[Ids, Offsets]:
    """The same texts, each between the ids `before` and `after`."""
    if not (len(before) or len(after)):
        return ids, offsets
    longer = offsets + np.arange(len(offsets)) * (len(before) + len(after))
    out = np.empty(longer[-1], dtype=np.int32)
    moved = longer[:-1] + len(before) - offsets[:-1]
    out[np.arange(len(ids)) + np.repeat(moved, np.diff(offsets))] = ids
    out[longer[:-1, None] + np.arange(len(before))] = before
    out[longer[1:, None] - np.arange(len(after), 0, -1)] = after
    return out, longer
