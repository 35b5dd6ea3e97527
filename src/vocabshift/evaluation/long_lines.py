"""NumPy work on lines of any length, a part at a time.

A line may be a hundred megabytes, and Ctrl-C waits for the end of one NumPy call; of parts it waits
for one, and what is only needed on the way takes the memory of one. Knows nothing of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

AT_ONCE = 1 << 21
"""Tokens, characters or bytes; a batch of shorter lines is one part."""


def parts_of(size: int) -> Iterator[slice]:
    """The slices that `size` things are worked on in, in order."""
    return (slice(at, min(at + AT_ONCE, size)) for at in range(0, size, AT_ONCE))


def running_sums(size: int, values: Callable[[slice], npt.NDArray[np.generic]]) -> Int64:
    """(size + 1,): the sum of all values in front of each, and of all; `values` gives a part."""
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
