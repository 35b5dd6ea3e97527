"""The spans of the tokens of many lines, end to end in a few arrays: for counting over them.

Owns the layout. Lines that the bytes of their tokens give back are laid out all at once; where the
tokens of the others stand is found by token_spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.counts import Ints
from vocabshift.evaluation.spans.token_spans import spans_of_ids
from vocabshift.evaluation.subject import Engine
from vocabshift.tokenizer.any_tokenizer import Ids


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


def flat_spans(
    engine: Engine,
    lines: Sequence[str],
    *,
    encoded: tuple[Ids, Ints] | None = None,
    threads: int = 1,
) -> FlatSpans:
    """The tokens of `lines` and their places; no BOS or EOS.

    `encoded`: ids and offsets of the lines as `Engine.encode_batch` gives them, where they are
    known already.
    """
    ids, offsets = engine.encode_batch(lines, threads=threads) if encoded is None else encoded
    reached = np.zeros(len(ids) + 1, dtype=np.int64)  # bytes of all tokens before each
    np.cumsum(engine.byte_counts[ids], out=reached[1:])
    begins = reached[offsets]
    extra, inexact = _compare(lines, engine.join(ids), begins)
    before = np.repeat(begins[:-1] + extra, np.diff(offsets))
    starts = np.maximum(reached[:-1] - before, 0)
    ends = np.maximum(reached[1:] - before, 0)
    for number in inexact:
        here = slice(int(offsets[number]), int(offsets[number + 1]))
        n_tokens = np.array([0, here.stop - here.start])
        (found,) = spans_of_ids(engine, [lines[number]], ids[here], n_tokens)
        starts[here], ends[here] = found.starts, found.ends
    return FlatSpans(ids, offsets, starts, ends)


def _compare(lines: Sequence[str], joined: bytes, begins: Ints) -> tuple[Ints, list[int]]:
    """Spaces that the tokens put in front of each line (0 or 1), and the lines that their bytes do
    not give back; the tokens of line n are `joined` from begins[n] to begins[n + 1]."""
    extra = np.zeros(len(lines), dtype=np.int64)
    inexact = []
    for number, (line, (begin, end)) in enumerate(
        zip(lines, pairwise(begins.tolist()), strict=True)
    ):
        data, found = line.encode(), joined[begin:end]
        if found == data:
            continue
        if found == b" " + data:
            extra[number] = 1
        else:
            inexact.append(number)
    return extra, inexact
