"""Syllable alignment, robustness and switch points counted token by token: slow, and obvious."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import regex

from reference import syllables

Pieces = Sequence[bytes]
"""The bytes of the tokens of a line, which joined are the line."""


def alignment(lines: Sequence[tuple[str, Pieces]]) -> dict[str, float]:
    """The metrics of syllable alignment that say something, by name."""
    cut = {"character": 0, "grapheme": 0, "syllable": 0}
    n_tokens = n_borders = n_at_syllables = n_units = n_whole = 0
    for line, pieces in lines:
        allowed = {
            "character": _bytes(line, range(len(line) + 1)),
            "grapheme": _bytes(line, [0, *(m.end() for m in regex.finditer(r"\X", line))]),
            "syllable": _bytes(line, [0, *syllables.borders(line)]),
        }
        cuts = places(pieces)[1:-1]
        n_tokens += len(pieces)
        for kind, good in allowed.items():
            ends = pairwise(places(pieces))
            cut[kind] += sum(begin not in good or end not in good for begin, end in ends)
        n_borders += len(cuts)
        n_at_syllables += sum(at in allowed["syllable"] for at in cuts)
        edges = sorted(allowed["syllable"])
        for begin, end in pairwise(edges):
            if end - begin > 1:
                n_units += 1
                n_whole += not any(begin < at < end for at in cuts)
    shares = {f"{kind}_cut_rate": (count, n_tokens) for kind, count in cut.items()}
    shares["syllable_border_rate"] = (n_at_syllables, n_borders)
    shares["whole_syllable_rate"] = (n_whole, n_units)
    return {name: above / below for name, (above, below) in shares.items() if below}


def places(pieces: Pieces) -> list[int]:
    """Where tokens begin and end, in bytes: (n_tokens + 1)."""
    return [len(b"".join(pieces[:number])) for number in range(len(pieces) + 1)]


def _bytes(line: str, offsets: Sequence[int] | range) -> set[int]:
    return {len(line[:offset].encode()) for offset in offsets}


def edit_distance(before: Sequence[int], after: Sequence[int]) -> int:
    """Levenshtein's, by its definition."""
    table = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in range(len(before) + 1):
        for j in range(len(after) + 1):
            if i == 0 or j == 0:
                table[i][j] = i + j
            else:
                replaced = table[i - 1][j - 1] + (before[i - 1] != after[j - 1])
                table[i][j] = min(replaced, table[i - 1][j] + 1, table[i][j - 1] + 1)
    return table[-1][-1]


def kept_outside(
    before: Pieces, after: Pieces, word: tuple[int, int], grown: int
) -> tuple[int, int]:
    """(tokens that stay, all tokens) of those with text outside of the word at bytes [begin, end).

    The word grew by `grown` bytes. A token stays where one of the same bytes stands at the same
    place; one that has text behind the word and begins in it or behind it has moved with the text.
    """
    begin, end = word
    new = list(zip(places(after), after, strict=False))
    outside = kept = 0
    for at, piece in zip(places(before), before, strict=False):
        others = [n for n in range(len(piece)) if not piece[n : n + 1].isspace()]
        in_front = any(at + n < begin for n in others)
        behind = any(at + n >= end for n in others)
        if in_front or behind:
            outside += 1
            kept += (at + (grown if behind and at >= begin else 0), piece) in new
    return kept, outside
