"""Positions of the tokens of many lines, and lines that do not round-trip.

There are two layouts, for all lines of a language at once. `flat_spans` gives positions in bytes of
each line, for metrics on single lines. `place` gives positions in one text of all lines with its
words (`words.Layout`), and the loss. In both, tokens whose joined bytes are the line (with at most
the dummy prefix in front) are placed end to end; `token_spans` gives the positions of all others.

Loss: a line is lost if its tokens do not decode to it, up to canonical equivalence (Unicode NFC of
both) and one leading space. Other changes by a normalizer (case, compatibility characters, spaces)
count as loss.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift import _core
from vocabshift.evaluation.lines.token_facts import parts_of, repeated
from vocabshift.evaluation.lines.words import Cut, Layout, lay_out
from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.token_spans import LineSpans, spans_of_ids

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The tokens of all lines, and what of the lines does not come back."""

    layout: Layout  # that the places are in
    starts: Int64  # (n_tokens,) bytes into the layout
    ends: Int64  # exclusive
    n_lost_characters: Int64  # (n_lines,) code points
    is_lost: Int64  # (n_lines,) 1 for a line that does not come back


def place(
    engine: Engine,
    lines: Sequence[str],
    ids: Ids,
    offsets: Int64,
    *,
    cut: Cut | None = None,
) -> Placed:
    """Places and losses of `ids`, which are those of `lines` (`offsets`: (n_lines + 1,)).

    A line that only changed its Unicode form is laid out as its tokens decode: the same words.
    """
    starts, ends, differing = _end_to_end(engine, lines, ids, offsets)
    laid = list(lines)
    inexact = []
    for number in differing:
        here = slice(int(offsets[number]), int(offsets[number + 1]))
        found = _given_back(lines[number], engine.join(ids[here]))
        if found is None:
            inexact.append(number)
        else:
            spaces, laid[number] = found
            starts[here] = np.maximum(starts[here] - spaces, 0)
            ends[here] = np.maximum(ends[here] - spaces, 0)

    layout = lay_out(laid, cut)
    for part in parts_of(len(ids)):
        begin = repeated(layout.line_starts[:-1], offsets, part)
        starts[part] += begin
        ends[part] += begin

    lost = np.zeros(len(lines), dtype=np.int64)
    is_lost = np.zeros(len(lines), dtype=np.int64)
    for number in inexact:
        here = slice(int(offsets[number]), int(offsets[number + 1]))
        alone = np.array([0, here.stop - here.start])
        (of_tokens,) = spans_of_ids(engine, [lines[number]], ids[here], alone)
        starts[here] = of_tokens.starts + layout.line_starts[number]
        ends[here] = of_tokens.ends + layout.line_starts[number]
        (decoded,) = engine.decode_batch(ids[here], alone)
        is_lost[number] = not is_same(lines[number], decoded)
        lost[number] = lost_characters(lines[number], decoded) if is_lost[number] else 0
    return Placed(layout, starts, ends, lost, is_lost)


def lost_characters(line: str, back: str) -> int:
    """Characters of `line`, in NFC and counted as a multiset, that `back` does not hold."""
    wanted = Counter(unicodedata.normalize("NFC", line))
    return (wanted - Counter(unicodedata.normalize("NFC", back))).total()


def _given_back(line: str, back: bytes) -> tuple[int, str] | None:
    """How many spaces the tokens put in front (0 or 1), and the line as they give it back in
    another Unicode form; None where joining their bytes does not give it."""
    text = back.decode(errors="replace")
    if not is_same(line, text):
        return None
    has_prefix = text[:1] == " " and line[:1] != " "
    return (1, text[1:]) if has_prefix else (0, text)


def is_lost(engine: Engine, line: str, spans: LineSpans) -> bool:
    """Whether a line with these tokens does not come back."""
    if spans.exact:
        return False
    ends = np.array([0, len(spans.ids)], dtype=np.int64)
    return not is_same(line, engine.decode_batch(spans.ids, ends)[0])


def is_same(line: str, back: str) -> bool:
    """Whether `back` is the line up to canonical equivalence and one space in front."""
    wanted = unicodedata.normalize("NFC", line)
    found = unicodedata.normalize("NFC", back)
    return found in (wanted, f" {wanted}")


@dataclass(frozen=True, slots=True, eq=False)
class FlatSpans:
    """Tokens of all lines, in order; each array is (n_tokens,), but `offsets` is (n_lines + 1,)."""

    ids: Ids
    offsets: Int64  # where each line's tokens begin
    starts: Int64  # bytes into the line's UTF-8
    ends: Int64  # exclusive; equal to the start for a token that stands for nothing

    @property
    def line(self) -> Int64:
        """The line of each token."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def per_line(self, flags: npt.NDArray[np.bool_]) -> Int64:
        """How many tokens of each line have a flag (n_tokens,) set: (n_lines,)."""
        running = np.zeros(len(flags) + 1, dtype=np.int64)
        np.cumsum(flags, out=running[1:])
        return np.asarray(running[self.offsets[1:]] - running[self.offsets[:-1]])


def flat_spans(
    engine: Engine,
    lines: Sequence[str],
    *,
    encoded: tuple[Ids, Int64] | None = None,
    threads: int = 1,
) -> FlatSpans:
    """The tokens of `lines` and their places; no BOS or EOS.

    `encoded`: ids and offsets of the lines as `Engine.encode_batch` gives them, where they are
    known already.
    """
    ids, offsets = engine.encode_batch(lines, threads=threads) if encoded is None else encoded
    starts, ends, inexact = _end_to_end(engine, lines, ids, offsets)
    for number in inexact:
        here = slice(int(offsets[number]), int(offsets[number + 1]))
        n_tokens = np.array([0, here.stop - here.start])
        (found,) = spans_of_ids(engine, [lines[number]], ids[here], n_tokens)
        starts[here], ends[here] = found.starts, found.ends
    return FlatSpans(ids, offsets, starts, ends)


def _end_to_end(
    engine: Engine, lines: Sequence[str], ids: Ids, offsets: Int64
) -> tuple[Int64, Int64, list[int]]:
    """Bytes of each line at which its tokens begin and end, laid end to end, without a space that
    they put in front; and the lines that differ from the bytes of their tokens."""
    starts, ends, spaces = _core.place_tokens(
        list(lines), ids, offsets, engine.all_bytes, engine.byte_bounds
    )
    return starts, ends, np.flatnonzero(spaces < 0).tolist()
