"""What the core finds out about tokens of lines: like the obvious way, for any tokens and lines."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import metrics as slow
from reference.linguistic import places
from vocabshift import _core

TOKENS = [b"a", b"b", b"ab", b" ", b" a", b"", b"  ", "é".encode(), "é".encode()[:1]]
BYTES = b"".join(TOKENS)
BOUNDS = np.array(places(TOKENS))
ROWS = st.lists(st.lists(st.integers(0, len(TOKENS) - 1), max_size=6), min_size=1, max_size=4)
SYMBOLS = st.builds(  # long ones as often as short ones: the core takes 64 at a time
    lambda size, seed: random.Random(seed).choices(range(-2, 3), k=size),
    st.integers(0, 140),
    st.integers(0, 99),
)


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, rows)])
    return np.array([symbol for row in rows for symbol in row], dtype=np.int64), offsets


def place(lines: list[str], rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids, offsets = flat(rows)
    return _core.place_tokens(lines, ids.astype(np.int32), offsets, BYTES, BOUNDS)


@given(ROWS, st.lists(st.sampled_from(["as it is", "without a space", "a", ""]), min_size=4))
def test_places_of_tokens(rows: list[list[int]], ways: list[str]) -> None:
    """Lines that the tokens spell, with a space in front or without, and others."""
    lines, expected = [], []
    for ids, way in zip(rows, ways, strict=False):
        pieces = [TOKENS[i] for i in ids]
        spelled = b"".join(pieces)
        line = spelled.decode(errors="replace")
        line = {"as it is": line, "without a space": line.removeprefix(" ")}.get(way, way)
        spaces = next((n for n in (0, 1) if b" " * n + line.encode() == spelled), -1)
        edges = [max(at - max(spaces, 0), 0) for at in places(pieces)]
        lines.append(line)
        expected.append((edges[:-1], edges[1:], spaces))
    starts, ends, spaces = place(lines, rows)
    assert [at for row, _, _ in expected for at in row] == starts.tolist()
    assert [at for _, row, _ in expected for at in row] == ends.tolist()
    assert [of_line for _, _, of_line in expected] == spaces.tolist()


@given(st.lists(st.tuples(SYMBOLS, SYMBOLS), max_size=2))
def test_edit_distances(pairs: list[tuple[list[int], list[int]]]) -> None:
    """Levenshtein's by the table of Wagner and Fischer, for patterns of several 64 symbols too."""
    sides = [flat([pair[side] for pair in pairs]) for side in (0, 1)]
    found = _core.edit_distances(*((symbols, at[:-1], at[1:]) for symbols, at in sides))
    assert [slow.levenshtein(*pair) for pair in pairs] == found.tolist()


@given(st.lists(st.text("ab", max_size=5), unique=True))
def test_splits_of_tokens(tokens: list[str]) -> None:
    """Every cut of every token is tried."""
    expected = [
        (tokens.index(token), tokens.index(token[:cut]), tokens.index(token[cut:]))
        for token in tokens
        for cut in range(1, len(token))
        if token[:cut] in tokens and token[cut:] in tokens
    ]
    found = _core.split_tokens([token.encode() for token in tokens])
    assert expected == list(zip(*(ids.tolist() for ids in found), strict=True))


def test_what_does_not_fit_is_refused() -> None:
    """Instead of a look beyond the end of an array."""
    one, none = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="not of the vocabulary"):
        place(["a"], [[len(TOKENS)]])
    with pytest.raises(ValueError, match="not of the vocabulary"):
        place(["a"], [[-1]])
    with pytest.raises(ValueError, match="outside of the bytes"):
        _core.place_tokens(["a"], one, np.array([0, 1]), b"", np.array([0, 1]))
    with pytest.raises(ValueError, match="offsets"):
        _core.place_tokens(["a"], one, np.array([0, 2]), BYTES, BOUNDS)
    with pytest.raises(UnicodeEncodeError):
        place(["\ud800"], [[0]])
    with pytest.raises(ValueError, match="outside of the symbols"):
        _core.edit_distances((none, np.array([0]), np.array([1])), (none, one, one))
    with pytest.raises(ValueError, match="both sides"):
        _core.edit_distances((none, one, one), (none, none, none))
    side = (one, np.array([0, 1]), one, one + 9)
    words, first = np.array([[0, 1, 0]]), np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="outside of the lines"):
        _core.kept_tokens(side, side, words, first, np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match="a word"):
        _core.kept_tokens(side, side, words[:0], first, np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match="offsets"):
        _core.kept_tokens(side, (one, none, one, one), words, first, one)
