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
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.texts import Layout, lay_out
from vocabshift.evaluation.lines.token_facts import TokenFacts, parts_of, repeated, running_sums
from vocabshift.evaluation.lines.words import Cut
from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.token_spans import spans_of_ids

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
    facts: TokenFacts,
    lines: Sequence[str],
    ids: Ids,
    offsets: Int64,
    *,
    cut: Cut | None = None,
) -> Placed:
    """Places and losses of `ids`, which are those of `lines` (`offsets`: (n_lines + 1,)).

    A line that only changed its Unicode form is laid out as its tokens decode: the same words.
    """
    joined = engine.join(ids)
    reached = running_sums(len(ids), lambda part: facts.lengths[ids[part]])
    of_line = reached[offsets]  # where the tokens of each line begin in `joined`
    laid = list(lines)
    prefix = np.zeros(len(lines), dtype=np.int64)  # bytes in front of the line
    inexact = []
    for number, (line, (start, end)) in enumerate(
        zip(lines, pairwise(of_line.tolist()), strict=True)
    ):
        found = _given_back(line, joined[start:end])
        if found is None:
            inexact.append(number)
        else:
            prefix[number], laid[number] = found

    layout = lay_out(laid, cut)
    shifts = layout.line_starts[:-1] - of_line[:-1] - prefix
    starts, ends = np.empty_like(reached[1:]), np.empty_like(reached[1:])
    for part in parts_of(len(ids)):
        shift = repeated(shifts, offsets, part)
        floor = repeated(layout.line_starts[:-1], offsets, part)
        starts[part] = np.maximum(reached[:-1][part] + shift, floor)
        ends[part] = np.maximum(reached[1:][part] + shift, floor)

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
    """How many spaces the tokens put in front (0 or 1), and the line as they give it back; None
    where joining their bytes does not give it."""
    data = line.encode()
    if back == data:
        return 0, line
    if len(back) == len(data) + 1 and back[:1] == b" " and back[1:] == data:
        return 1, line
    text = back.decode(errors="replace")
    if not is_same(line, text):
        return None
    has_prefix = text[:1] == " " and line[:1] != " "
    return (1, text[1:]) if has_prefix else (0, text)


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


def _compare(lines: Sequence[str], joined: bytes, begins: Int64) -> tuple[Int64, list[int]]:
    """Spaces that the tokens put in front of each line (0 or 1), and the lines that their bytes do
    not give back; the tokens of line n are `joined` from begins[n] to begins[n + 1]."""
    sizes = np.fromiter(map(len, map(str.encode, lines)), np.int64, len(lines))
    for spaces in (0, 1):  # all lines at once where they are alike
        laid = [" " * spaces + line for line in lines] if spaces else lines
        is_alike = np.array_equal(np.diff(begins), sizes + spaces)
        if is_alike and "".join(laid).encode() == joined:
            return np.full(len(lines), spaces, dtype=np.int64), []
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
