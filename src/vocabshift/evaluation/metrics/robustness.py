"""Robustness: how much a small change of a text changes its ids.

Owns the changes (typos, normal forms, spaces, case), each a function of a line, and the metrics.
Changes are deterministic: a hash of the line gives the position of a typo. Distances are
Levenshtein's on ids, over the ids of the longer version: 0 if nothing changed, 1 if nothing stayed
the same.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from vocabshift import _core
from vocabshift.evaluation.lines.counts import Ints
from vocabshift.evaluation.lines.placing import FlatSpans, flat_spans
from vocabshift.evaluation.lines.texts import read_lines
from vocabshift.evaluation.metrics.metric import Better, Metric, Terms, ratio_rows
from vocabshift.results import Result, Results
from vocabshift.text.normalize import normalizer_function
from vocabshift.text.writing import inner_letters
from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.engine import Engine

TypoKind = Literal["swap", "delete", "replace"]

TYPOS: tuple[TypoKind, ...] = get_args(TypoKind)
"""A letter or mark and the one after it in each other's place; left out; another one of the line
in its place (a letter for a letter, a mark for a mark). Never the first or last of a word."""


@dataclass(frozen=True, slots=True)
class Typo:
    """A line with one mistyped word; offsets in characters."""

    text: str
    begin: int  # of the word between whitespace that it is in, in the line and in `text`
    end: int  # of that word in the line
    end_in_text: int


def typo(line: str, kind: TypoKind) -> Typo | None:
    """Return `line` with one typo, or None if no word of three letters or more takes one."""
    places, *alike = _inner(line)
    seed = zlib.crc32(f"{kind} {line}".encode())
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


_inner = functools.lru_cache(maxsize=1)(inner_letters)  # every kind asks for the same line


def _word(line: str, at: int) -> tuple[int, int]:
    """Begin and end of the word between whitespace that holds the character `at`."""
    begin = next((i + 1 for i in range(at - 1, -1, -1) if line[i].isspace()), 0)
    end = next((i for i in range(at + 1, len(line)) if line[i].isspace()), len(line))
    return begin, end


def _normal_form(name: str) -> Callable[[str], str]:
    def change(line: str) -> str:
        normalize = _normalizer(name)
        assert normalize is not None
        return normalize(line)

    return change


_normalizer = functools.cache(normalizer_function)


CHANGES: Mapping[str, Callable[[str], str]] = {
    "nfc": _normal_form("nfc"),
    "nfd": _normal_form("nfd"),
    "leading_space": lambda line: " " + line,
    "trailing_space": lambda line: line + " ",
    "lowercase": str.lower,
    "uppercase": str.upper,
}
"""Changes of a whole line, by name; a line may already be what they make of it."""

_IN_WORDS = {
    "swap": "two neighbouring characters swapped",
    "delete": "a character left out",
    "replace": "a character replaced",
    "nfc": "in NFC",
    "nfd": "in NFD",
    "leading_space": "a space in front",
    "trailing_space": "a space after",
    "lowercase": "in lower case",
    "uppercase": "in upper case",
}


def _metric(name: str, label: str, note: str, better: Better, *, is_spoilt_by_loss: bool) -> Metric:
    """They are compared with nobody: a typo changes a larger share of fewer tokens."""
    return Metric(name, "robustness", label, note, better, is_spoilt_by_loss=is_spoilt_by_loss)


METRICS = (
    *(
        _metric(
            f"{name}_change",
            f"changed ids: {name.replace('_', ' ')}",
            f"share of ids that differ, {_IN_WORDS[name]}",
            "lower",
            is_spoilt_by_loss=name in TYPOS,
        )
        for name in (*TYPOS, *CHANGES)
    ),
    *(
        _metric(
            f"{name}_locality",
            f"locality: {name}",
            f"share of other words' tokens that stay, {_IN_WORDS[name]}",
            "higher",
            is_spoilt_by_loss=True,
        )
        for name in TYPOS
    ),
)
"""`*_change`: share of the ids that change. `*_locality`, where one word got a typo: of the tokens
with text of other words, those that stay, the same id at the same place. A superword that reaches
from the mistyped word into another one is among them."""

_SPACES = np.frombuffer(b" \t\n\r\v\f", dtype=np.uint8)

Flags = npt.NDArray[np.bool_]


def robustness(engines: Mapping[str, Engine], texts: Any, *, threads: int = 1) -> Results:
    """METRICS for each engine and language, with intervals over lines.

    `texts` are what `texts.read_lines` takes, and errors are its errors. A line that a change
    leaves as it is (no word to mistype, nothing to decompose, no case) is not counted for it; a
    change that no line knows has no row.
    """
    rows: list[Result] = []
    for language, lines in read_lines(texts).items():
        changed = change_lines(lines)
        rows += ratio_rows(
            language,
            {
                name: robustness_terms(
                    engine, flat_spans(engine, lines, threads=threads), changed, threads=threads
                )
                for name, engine in engines.items()
            },
        )
    return Results(rows)


@dataclass(frozen=True, slots=True, eq=False)
class TypoLines:
    """Every line with one typo; made by `change_lines`."""

    texts: Sequence[str]  # the line itself where it has no word to mistype
    is_changed: Flags  # (n_lines,)
    words: Ints  # (n_lines, 3): begin and end of the mistyped word, by how much it grew; in bytes


@dataclass(frozen=True, slots=True, eq=False)
class ChangedLines:
    """Lines of one language, and what every change makes of them; made by `change_lines`."""

    lines: Sequence[str]
    typos: Mapping[TypoKind, TypoLines]
    changed: Mapping[str, Mapping[int, str]]  # by change, then line: those that it changes
    first: Ints  # (n_lines,): where each line begins, with room for its longest version
    n_text: npt.NDArray[np.int32]  # non-space bytes before each place of the lines


def change_lines(lines: Sequence[str]) -> ChangedLines:
    """Every change of `lines`: made once, for all tokenizers."""
    found = zip(*([typo(line, kind) for kind in TYPOS] for line in lines), strict=True)
    typos = {kind: _mistype(lines, made) for kind, made in zip(TYPOS, found, strict=True)}
    changed = {
        name: {number: text for number, line in enumerate(lines) if (text := change(line)) != line}
        for name, change in CHANGES.items()
    }
    encoded = list(map(str.encode, lines))
    grown = np.max([np.abs(found.words[:, 2]) for found in typos.values()], axis=0)
    room = [len(data) + more for data, more in zip(encoded, grown.tolist(), strict=True)]
    first = np.cumsum([0, *room[:-1]])
    laid = b"".join(data.ljust(size) for data, size in zip(encoded, room, strict=True))
    n_text = np.zeros(len(laid) + 1, dtype=np.int32)
    np.cumsum(~np.isin(np.frombuffer(laid, dtype=np.uint8), _SPACES), out=n_text[1:])
    return ChangedLines(lines, typos, changed, first, n_text)


def _mistype(lines: Sequence[str], found: Sequence[Typo | None]) -> TypoLines:
    pairs = list(zip(lines, found, strict=True))
    return TypoLines(
        [line if made is None else made.text for line, made in pairs],
        np.array([made is not None for made in found]),
        np.array([_word_bytes(line, made) for line, made in pairs], dtype=np.int64),
    )


def robustness_terms(
    engine: Engine, before: FlatSpans, text: ChangedLines, *, threads: int = 1
) -> dict[str, Terms]:
    """Numerators and denominators of each metric, (n_lines,) each, of one tokenizer.

    `before`: its tokens of the lines as they are.
    """
    shares: dict[str, Terms] = {}
    local: dict[str, Terms] = {}
    for kind, made in text.typos.items():
        after = flat_spans(engine, made.texts, threads=threads)
        mistyped = np.flatnonzero(made.is_changed)
        offsets = after.offsets[mistyped], after.offsets[mistyped + 1]
        shares[f"{kind}_change"] = _changed(before, mistyped, after.ids, *offsets)
        local[f"{kind}_locality"] = _kept(text, made, before, after)
    for name, other in text.changed.items():
        ids, found = engine.encode_batch(list(other.values()), threads=threads)
        lines = np.array(list(other), dtype=np.int64)
        shares[f"{name}_change"] = _changed(before, lines, ids, found[:-1], found[1:])
    return shares | local


def _changed(before: FlatSpans, lines: Ints, ids: Ids, starts: Ints, ends: Ints) -> Terms:
    """Distance (ids put in, taken out or replaced) and the longer length of each of the `lines`,
    whose ids become ids[starts[i]:ends[i]]; zeros for the others."""
    own = before.offsets[lines], before.offsets[lines + 1]
    distances, longer = np.zeros((2, len(before.offsets) - 1), dtype=np.int64)
    distances[lines] = _core.edit_distances((before.ids, *own), (ids, starts, ends))
    longer[lines] = np.maximum(own[1] - own[0], ends - starts)
    return distances, longer


def _kept(text: ChangedLines, made: TypoLines, before: FlatSpans, after: FlatSpans) -> Terms:
    """Tokens with text outside of the mistyped word that stay, and all of them, of each line."""
    sides = [(side.ids, side.offsets, side.starts, side.ends) for side in (before, after)]
    return _core.kept_tokens(sides[0], sides[1], made.words, text.first, text.n_text)


def _word_bytes(line: str, made: Typo | None) -> tuple[int, int, int]:
    """Begin and end of the word in the line, and by how much it grew; all in bytes.

    Without a typo the whole line is that word: nothing is outside of it.
    """
    if made is None:
        return 0, len(line.encode()), 0
    begin = len(line[: made.begin].encode())
    end = begin + len(line[made.begin : made.end].encode())
    return begin, end, len(made.text.encode()) - len(line.encode())
