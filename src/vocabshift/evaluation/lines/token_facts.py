"""Facts about every token of a vocabulary, as arrays by id: bytes, hash, character, superword.

All follow from the bytes that a token represents in text; nothing here looks at a line. The file
also runs NumPy on lines of any length, one part at a time: a line may have a hundred megabytes, and
Ctrl-C waits for the end of one NumPy call. With parts it waits for one part, and temporary arrays
take the memory of one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vocabshift.tokenizer.engine import Engine

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SPACE = 0x20
_IS_SPACE = np.zeros(256, dtype=np.bool_)  # what bytes.strip() strips
_IS_SPACE[[9, 10, 11, 12, 13, 32]] = True
_CHARACTER_BYTES = np.zeros(256, dtype=np.int64)  # of the character that a byte begins; 0: none
_CHARACTER_BYTES[:0x80] = 1
_CHARACTER_BYTES[0xC2:0xE0] = 2
_CHARACTER_BYTES[0xE0:0xF0] = 3
_CHARACTER_BYTES[0xF0:0xF5] = 4


class TokenFacts:
    """Each array is (row_count,), by id; ids without a token stand for nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.lengths: Int64 = engine.byte_counts
        self._starts = engine.byte_bounds[:-1]
        self._data = engine.all_bytes

    @cached_property
    def hashes(self) -> Int64:
        """64-bit hashes of the bytes that tokens stand for, the same in all vocabularies.

        Special tokens have others than text that is written so. Python's own hash: it differs from
        run to run, and two of a million tokens share one with a chance of 3e-8.
        """
        found = np.fromiter(map(hash, self._engine.spelled), np.int64, len(self.lengths))
        special = list(self._engine.special_ids)
        found[special] = ~found[special]
        return found

    @cached_property
    def is_single_character(self) -> Bools:
        """Tokens that stand for exactly one whole Unicode character.

        "▁" and "Ġ" count as the space that they represent; part of a character does not count.
        """
        found = np.zeros(len(self.lengths), dtype=np.bool_)
        (short,) = np.nonzero((self.lengths > 0) & (self.lengths <= 4))
        first = self._data[self._starts[short]]
        for token_id in short[_CHARACTER_BYTES[first] == self.lengths[short]].tolist():
            start = self._starts[token_id]
            data = self._data[start : start + self.lengths[token_id]].tobytes()
            try:
                found[token_id] = len(data.decode()) == 1
            except UnicodeDecodeError:
                continue
        return found

    @cached_property
    def is_superword(self) -> Bools:
        """Tokens with text on both sides of a space (the rule of `checks.vocabulary`)."""
        has_text = np.zeros(len(self._data) + 1, dtype=np.int64)  # bytes of text before each place
        np.cumsum(~_IS_SPACE[self._data], out=has_text[1:])
        token = np.repeat(np.arange(len(self.lengths)), self.lengths)
        (spaces,) = np.nonzero(self._data == _SPACE)
        of = token[spaces]
        ends = self._starts[of] + self.lengths[of]
        within = (has_text[spaces] > has_text[self._starts[of]]) & (
            has_text[ends] > has_text[spaces]
        )
        found = np.zeros(len(self.lengths), dtype=np.bool_)
        found[of[within]] = True
        return found


AT_ONCE = 1 << 21
"""Tokens, characters or bytes; a batch of shorter lines is one part."""


def parts_of(size: int) -> Iterator[slice]:
    """Return the consecutive slices in which `size` items are processed."""
    return (slice(at, min(at + AT_ONCE, size)) for at in range(0, size, AT_ONCE))


def running_sums(size: int, values: Callable[[slice], npt.NDArray[np.generic]]) -> Int64:
    """Return (size + 1,): the sums of the first 0, 1, … size values; `values` returns a part."""
    sums = np.zeros(size + 1, dtype=np.int64)
    for part in parts_of(size):
        into = sums[part.start + 1 : part.stop + 1]
        np.cumsum(values(part), out=into)
        if part.start:
            into += sums[part.start]
    return sums


def repeated(values: Int64, offsets: Int64, part: slice) -> Int64:
    """Of `np.repeat(values, np.diff(offsets))`, a part: what holds for the line of each token.

    `offsets`: (n_lines + 1,), where the tokens of each line begin.
    """
    first, last = np.searchsorted(offsets, [part.start, part.stop - 1], side="right") - 1
    lines = slice(int(first), int(last) + 1)
    here = np.clip(offsets[lines.start : lines.stop + 1], part.start, part.stop)
    return np.repeat(values[lines], np.diff(here))
