"""The parts of a tokenized line that may be drawn separately, each with its tokens.

A part begins and ends at token borders, but never inside a sign that is drawn as a whole: if tokens
share an orthographic syllable or a character, it is one part with several tokens. Knows nothing of
HTML or terminals.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vocabshift.evaluation.lines.views import TokenizedLine


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a line that becomes one element: bytes [start, end) and who has a part in it."""

    start: int
    end: int
    tokens: tuple[int, ...]  # indices into the line's tokens; empty: text without a token


def segments(line: TokenizedLine) -> Iterator[Segment]:
    """Cut a line where tokens begin and end, but never inside a sign that is drawn as one."""
    n_bytes = line.n_bytes
    borders = line.borders if line.borders is not None else _character_borders(line.text)
    borders = sorted({0, *borders, n_bytes})
    points = {0, n_bytes}
    for token in line.tokens:
        for edge in (token.start, token.end):
            points |= set(_around(borders, edge))
    edges = sorted(points)
    # Zero-width tokens stand in front of the element that begins where they are.
    empty = [i for i, token in enumerate(line.tokens) if token.start == token.end]
    empty_at = {i: line.tokens[i].start for i in empty}
    next_empty, first = 0, 0
    for start, end in pairwise(edges):
        while next_empty < len(empty) and empty_at[empty[next_empty]] <= start:
            yield Segment(start, start, (empty[next_empty],))
            next_empty += 1
        while first < len(line.tokens) and line.tokens[first].end <= start:
            first += 1
        inside = []
        for i in range(first, len(line.tokens)):
            if line.tokens[i].start >= end:
                break
            if line.tokens[i].end > start:
                inside.append(i)
        while next_empty < len(empty) and empty_at[empty[next_empty]] < end:
            inside.append(empty[next_empty])
            next_empty += 1
        yield Segment(start, end, tuple(sorted(set(inside))))
    for i in empty[next_empty:]:
        yield Segment(n_bytes, n_bytes, (i,))


def _around(borders: Sequence[int], edge: int) -> tuple[int, int]:
    """The borders at both sides of `edge`; twice itself where it is one."""
    return (borders[bisect_right(borders, edge) - 1], borders[bisect_left(borders, edge)])


def _character_borders(text: str) -> list[int]:
    borders, at = [0], 0
    for character in text:
        at += len(character.encode())
        borders.append(at)
    return borders
