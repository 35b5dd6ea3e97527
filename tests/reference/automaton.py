"""Backtracking, as slow and obvious as can be: what the automaton is held against.

A regex is a tree of tuples. `matches` yields the ends of its matches at a place in the order in
which a backtracking engine tries them; the first one counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

Tree = tuple[Any, ...]
"""("class", text, members), ("sequence", parts), ("choice", parts), ("repeat", tree, least, most,
kind), ("atomic", tree), ("look", tree, negated), ("behind", class, negated), ("end",), ("start",).
`most` may be None, `kind` is "", "?" or "+"."""


def matches(tree: Tree, text: str, at: int) -> Iterator[int]:
    kind = tree[0]
    if kind == "class":
        if at < len(text) and text[at] in tree[2]:
            yield at + 1
    elif kind == "sequence":
        yield from _sequence(tree[1], text, at)
    elif kind == "choice":
        for part in tree[1]:
            yield from matches(part, text, at)
    elif kind == "repeat":
        ends = _repeat(tree, text, at, 0)
        yield from _first(ends) if tree[4] == "+" else ends
    elif kind == "atomic":
        yield from _first(matches(tree[1], text, at))
    elif kind == "look":
        if any(True for _ in matches(tree[1], text, at)) != tree[2]:
            yield at
    elif kind == "behind":
        if (at > 0 and text[at - 1] in tree[1][2]) != tree[2]:
            yield at
    elif at == (0 if kind == "start" else len(text)):
        yield at


def _first(ends: Iterator[int]) -> Iterator[int]:
    yield from [end for _, end in zip(range(1), ends, strict=False)]


def _sequence(parts: tuple[Tree, ...], text: str, at: int) -> Iterator[int]:
    if not parts:
        yield at
        return
    for end in matches(parts[0], text, at):
        yield from _sequence(parts[1:], text, end)


def _repeat(tree: Tree, text: str, at: int, count: int) -> Iterator[int]:
    _, part, least, most, kind = tree
    if count >= least and kind == "?":
        yield at
    if most is None or count < most:
        for end in matches(part, text, at):
            yield from _repeat(tree, text, end, count + 1)
    if count >= least and kind != "?":
        yield at


def split(tree: Tree, text: str) -> list[str]:
    """The matches from left to right, and what is between them."""
    cuts = {0, len(text)}
    at, last_end = 0, -1
    while at <= len(text):
        end = next(matches(tree, text, at), None)
        if end is None or (end == at and end == last_end):
            at += 1
            continue
        cuts |= {at, end}
        at = last_end = end
    places = sorted(cuts)
    return [text[a:b] for a, b in itertools.pairwise(places)]
