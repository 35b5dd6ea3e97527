"""Strings of Arrow as what they are, bytes and offsets: no str is made of them.

Knows the arrays of pyarrow by their methods and imports nothing: whoever has one has pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Block = tuple[memoryview, NDArray[np.int64], NDArray[np.int64]]
"""UTF-8 bytes, and where each string begins and ends in them."""

_OFFSETS = {"string": np.int32, "large_string": np.int64}
_CAN_BE_CAST = ("string_view", "dictionary<values=string,", "dictionary<values=large_string,")


def is_arrow(value: object) -> bool:
    """Whether it comes from pyarrow."""
    return type(value).__module__.partition(".")[0] == "pyarrow"


def string_blocks(strings: Any) -> Iterator[Block]:
    """One block for each chunk of a pyarrow Array or ChunkedArray of strings.

    The bytes are those of the array itself. TypeError for what holds no strings, ValueError for
    nulls; nothing here looks whether the bytes are UTF-8.
    """
    kind = str(getattr(strings, "type", type(strings).__name__))
    if kind not in _OFFSETS and not kind.startswith(_CAN_BE_CAST):
        raise TypeError(f"an Arrow {kind}; give an array of strings, as a column of a table is one")
    if strings.null_count:
        raise ValueError(
            f"{strings.null_count} of {len(strings)} texts are null; leave them out with "
            "drop_null() or make them empty with fill_null('')"
        )
    for chunk in getattr(strings, "chunks", [strings]):
        yield _block(chunk if kind in _OFFSETS else chunk.cast("large_string"))


def _block(array: Any) -> Block:
    _, offsets, data = array.buffers()
    if not len(array):  # may be without buffers
        return memoryview(b""), np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = np.frombuffer(offsets, _OFFSETS[str(array.type)])
    places = places[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return memoryview(data if data is not None else b""), places[:-1], places[1:]
