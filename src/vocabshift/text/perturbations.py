"""Small changes of a text that mean nothing, or little: typos, normal forms, spaces and case.

Owns the changes, each a function of a line. There is no chance in them: where a typo falls is a
hash of the line. Knows nothing of tokenizers.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import regex

from vocabshift.text.normalize import normalizer_function

TypoKind = Literal["swap", "delete", "replace"]

TYPOS: tuple[TypoKind, ...] = get_args(TypoKind)
"""A letter or mark and the one behind it in each other's place; left out; another one of the line
in its place (a letter for a letter, a mark for a mark). Never the first or last of a word."""


@dataclass(frozen=True, slots=True)
class Typo:
    """A line with one mistyped word; offsets in characters."""

    text: str
    begin: int  # of the word between whitespace that it is in, in the line and in `text`
    end: int  # of that word in the line
    end_in_text: int


def typo(line: str, kind: TypoKind) -> Typo | None:
    """`line` with one typo, or None where it has no place for it (a word of three letters)."""
    places = [match.start() for match in _inner_letters().finditer(line)]
    seed = zlib.crc32(f"{kind} {line}".encode())
    alike = (set(_letters().findall(line)), set(_marks().findall(line)))
    for number in range(len(places)):
        at = places[(seed + number) % len(places)]
        others = alike[0] if line[at] in alike[0] else alike[1]
        if kind == "delete":
            new = line[at + 1]
        elif kind == "swap" and line[at] != line[at + 1]:
            new = line[at + 1] + line[at]
        elif kind == "replace" and len(others) > 1:
            choice = sorted(others - {line[at]})
            new = choice[seed % len(choice)] + line[at + 1]
        else:
            continue
        begin, end = _word(line, at)
        return Typo(line[:at] + new + line[at + 2 :], begin, end, end + len(new) - 2)
    return None


def _word(line: str, at: int) -> tuple[int, int]:
    """Begin and end of the word between whitespace that holds the character `at`."""
    begin, end = at, at + 1
    while begin > 0 and not line[begin - 1].isspace():
        begin -= 1
    while end < len(line) and not line[end].isspace():
        end += 1
    return begin, end


def _normal_form(name: str) -> Callable[[str], str]:
    def change(line: str) -> str:
        normalize = normalizer_function(name)
        assert normalize is not None
        return normalize(line)

    return change


CHANGES: Mapping[str, Callable[[str], str]] = {
    "nfc": _normal_form("nfc"),
    "nfd": _normal_form("nfd"),
    "leading_space": lambda line: " " + line,
    "trailing_space": lambda line: line + " ",
    "lowercase": str.lower,
    "uppercase": str.upper,
}
"""Changes of a whole line, by name; a line may already be what they make of it."""


@functools.cache
def _inner_letters() -> regex.Pattern[str]:
    return regex.compile(r"(?<=[\p{L}\p{M}])[\p{L}\p{M}](?=[\p{L}\p{M}])")


@functools.cache
def _letters() -> regex.Pattern[str]:
    return regex.compile(r"\p{L}")


@functools.cache
def _marks() -> regex.Pattern[str]:
    return regex.compile(r"\p{M}")
