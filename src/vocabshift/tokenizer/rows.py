"""Rows of a batch: the ids of texts, truncated, put into a template and padded.

As `tokenizers` does it, without the texts. What it does not do (a call that fails; overflowing
tokens of pairs) is None, and left to `tokenizers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.tokenizer.any_tokenizer import Ids

Span = tuple[int, int]  # of a text's tokens: the first, and one after the last


class Slot(NamedTuple):
    """A part of a template: special tokens, or the place of a text."""

    text: int | None  # 0, or 1 for the second of a pair
    type_id: int
    ids: Ids  # of special tokens


@dataclass(frozen=True)
class Template:
    """What a post-processor puts round a text or a pair of texts."""

    slots: tuple[Slot, ...]

    @property
    def n_special(self) -> int:
        """Tokens that it adds."""
        return sum(len(slot.ids) for slot in self.slots if slot.text is None)


class Encoded(NamedTuple):
    """Ids of a batch's first or second texts: text i is ids[bounds[i]:bounds[i + 1]]."""

    ids: Ids
    bounds: list[int]


class Part(NamedTuple):
    """Tokens of a row that have the same masks."""

    ids: Ids
    type_id: int
    is_special: int
    is_attended: int  # 0 for padding


@dataclass(frozen=True)
class Rows:
    """The rows of a batch; row i is ids[bounds[i]:bounds[i + 1]]."""

    samples: list[int]  # which text each is of
    windows: list[int]  # 0, or the number of the overflow
    parts: list[list[Part]]
    sizes: list[int]  # tokens

    @property
    def shape(self) -> tuple[int, int] | None:
        """(rows, tokens), where all have equally many."""
        return (len(self.sizes), self.sizes[0]) if len(set(self.sizes)) == 1 else None

    def ids(self) -> Ids:
        """Flat."""
        parts = [part.ids for row in self.parts for part in row]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def id_lists(self) -> list[list[int]]:
        """By row."""
        if len(self.sizes) == 1:
            return [self.ids().tolist()]
        return _core.id_lists(self.ids(), np.cumsum([0, *self.sizes]))

    def mask(self, name: str) -> NDArray[np.int64]:
        """A field of Part for each token, flat."""
        parts = [part for row in self.parts for part in row]
        values = np.array([getattr(part, name) for part in parts], dtype=np.int64)
        return np.repeat(values, [len(part.ids) for part in parts])

    def mask_lists(self, name: str) -> list[list[int]]:
        """The same by row."""
        values: list[list[int]] = [[getattr(part, name) for part in row] for row in self.parts]
        if len(distinct := {value for row in values for value in row}) == 1:
            value = distinct.pop()
            return [[value] * size for size in self.sizes]
        lists = []
        for row, parts in zip(values, self.parts, strict=True):
            found: list[int] = []
            for value, part in zip(row, parts, strict=True):
                found += [value] * len(part.ids)
            lists.append(found)
        return lists


def rows_of(
    texts: Sequence[Encoded],
    template: Template,
    truncation: Mapping[str, Any] | None,
    padding: Mapping[str, Any] | None,
    *,
    overflow: bool,
) -> Rows | None:
    """Truncate, put into the template and pad, as the settings of a `tokenizers.Tokenizer` say.

    `texts`: the first texts, and the second ones of pairs; `overflow`: a row of each window of a
    text, instead of one of the first. None where `tokenizers` must do it.
    """
    samples, windows, rows = [], [], []
    lengths = [list(map(int.__sub__, text.bounds[1:], text.bounds)) for text in texts]
    n_special = template.n_special
    specials = [Part(slot.ids, slot.type_id, 1, 1) for slot in template.slots]
    for sample, sizes in enumerate(zip(*lengths, strict=True)):
        spans = _truncated(sizes, n_special, truncation, overflow=overflow)
        if spans is None:
            return None
        for window, span in enumerate(spans):
            row = specials.copy()
            for i, (text, type_id, _) in enumerate(template.slots):
                if text is not None:
                    at = texts[text].bounds[sample]
                    ids = texts[text].ids[at + span[text][0] : at + span[text][1]]
                    row[i] = Part(ids, type_id, 0, 1)
            rows.append(row)
            samples.append(sample)
            windows.append(window)
    row_sizes = [sum([len(part.ids) for part in row]) for row in rows]
    if padding is not None:
        _pad(rows, row_sizes, padding)
    return Rows(samples, windows, rows, row_sizes)


def _truncated(
    sizes: tuple[int, ...], n_special: int, truncation: Mapping[str, Any] | None, *, overflow: bool
) -> list[tuple[Span, ...]] | None:
    """For each row of one text or pair, which tokens it holds."""
    if truncation is None or sum(sizes) + n_special <= truncation["max_length"]:
        return [tuple([(0, size) for size in sizes])]
    room = truncation["max_length"] - n_special
    if room <= 0 or (overflow and len(sizes) > 1):
        return None
    kept = _kept(room, sizes, truncation["strategy"])
    stride, from_right = truncation["stride"], truncation["direction"] == "right"
    if kept is None or any(stride >= new < old for new, old in zip(kept, sizes, strict=True)):
        return None
    if overflow:
        return [(span,) for span in _windows(sizes[0], kept[0], stride, from_right=from_right)]
    cut = zip(kept, sizes, strict=True)
    return [tuple([(0, new) if from_right else (old - new, old) for new, old in cut])]


def _kept(room: int, sizes: tuple[int, ...], strategy: str) -> tuple[int, ...] | None:
    """How many tokens of each text are kept; None where `tokenizers` raises."""
    if strategy == "longest_first":
        if len(sizes) == 1:
            return (room,)
        short = min(*sizes, room // 2)  # both are cut, and what is odd goes to the longer one
        return (room - short, short) if sizes[0] > sizes[1] else (short, room - short)
    at = 0 if strategy == "only_first" else 1
    too_many = sum(sizes) - room
    if at == len(sizes) or sizes[at] <= too_many:
        return None
    return tuple([size - too_many * (i == at) for i, size in enumerate(sizes)])


def _windows(size: int, room: int, stride: int, *, from_right: bool) -> list[Span]:
    """A text in windows of `room` tokens, neighbours of which share `stride` tokens."""
    windows = []
    for start in range(0, size, room - stride):
        stop = min(start + room, size)
        windows.append((start, stop) if from_right else (size - stop, size - start))
        if stop == size:
            break
    return windows


def _pad(rows: list[list[Part]], sizes: list[int], padding: Mapping[str, Any]) -> None:
    """Lengthen the rows, and their sizes, in place."""
    target = padding["length"] if padding["length"] is not None else max(sizes)
    multiple = padding["pad_to_multiple_of"]
    if multiple:
        target = -(-target // multiple) * multiple
    pads = np.full(target, padding["pad_id"], dtype=np.int32)
    for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if size < target:
            pad = Part(pads[: target - size], padding["pad_type_id"], 1, 0)
            row.insert(0 if padding["direction"] == "left" else len(row), pad)
            sizes[i] = target
