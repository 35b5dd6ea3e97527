"""The spans of the tokens of many lines, end to end in a few arrays: for counting over them.

Owns the layout. Where a token stands is found by token_spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.counts import Ints
from vocabshift.evaluation.engine import Engine, Ids
from vocabshift.evaluation.token_spans import iter_token_spans


@dataclass(frozen=True, slots=True, eq=False)
class FlatSpans:
    """Tokens of all lines, in order; each array is (n_tokens,), but `offsets` is (n_lines + 1,)."""

    ids: Ids
    offsets: Ints  # where each line's tokens begin
    starts: Ints  # bytes into the line's UTF-8
    ends: Ints  # exclusive; equal to the start for a token that stands for nothing

    @property
    def line(self) -> Ints:
        """The line of each token."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def per_line(self, flags: npt.NDArray[np.bool_]) -> Ints:
        """How many tokens of each line have a flag (n_tokens,) set: (n_lines,)."""
        running = np.zeros(len(flags) + 1, dtype=np.int64)
        np.cumsum(flags, out=running[1:])
        return np.asarray(running[self.offsets[1:]] - running[self.offsets[:-1]])


def flat_spans(engine: Engine, lines: Sequence[str], *, threads: int = 1) -> FlatSpans:
    """The tokens of `lines` and their places; no BOS or EOS."""
    found = list(iter_token_spans(engine, lines, threads=threads))
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(spans.ids) for spans in found], out=offsets[1:])
    if not found:
        nothing = np.zeros(0, dtype=np.int64)
        return FlatSpans(np.zeros(0, dtype=np.int32), offsets, nothing, nothing)
    return FlatSpans(
        np.concatenate([spans.ids for spans in found]),
        offsets,
        np.concatenate([spans.starts for spans in found]),
        np.concatenate([spans.ends for spans in found]),
    )
