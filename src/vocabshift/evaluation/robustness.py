"""What a small change of a text does to its ids.

Owns the metrics; the changes themselves are `text.perturbations`. Distances are Levenshtein's on
ids, over the ids of the longer version: 0 where nothing changed, 1 where nothing stayed. Needs
rapidfuzz (extra `stats`). Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.bootstrap import Terms
from vocabshift.evaluation.counts import Ints
from vocabshift.evaluation.engine import Engine, Ids
from vocabshift.evaluation.flat_spans import FlatSpans, flat_spans
from vocabshift.evaluation.ratio_rows import Family, ratio_rows
from vocabshift.evaluation.texts import read_lines
from vocabshift.results import Result, Results
from vocabshift.text.perturbations import CHANGES, TYPOS, Typo, TypoKind, typo

FAMILY: Family = {
    **{
        f"{name}_change": ("lower", f"share of the ids that change: {name.replace('_', ' ')}")
        for name in (*TYPOS, *CHANGES)
    },
    **{
        f"{name}_locality": ("higher", f"share of tokens of other words that stay: {name}")
        for name in TYPOS
    },
}
"""`*_change`: share of the ids that change. `*_locality`, where one word got a typo: of the tokens
with text of other words, those that stay, the same id at the same place. A superword that reaches
from the mistyped word into another one is among them."""

_SPACES = np.frombuffer(b" \t\n\r\v\f", dtype=np.uint8)

Flags = npt.NDArray[np.bool_]


def robustness(engines: Mapping[str, Engine], texts: Any, *, threads: int = 1) -> Results:
    """The metrics of FAMILY for each engine and language, with intervals over lines.

    `texts` are what `texts.read_lines` takes, and errors are its errors. A line that a change
    leaves as it is (no word to mistype, nothing to decompose, no case) is not counted for it; a
    change that no line knows has no row. Raises ImportError where rapidfuzz is not installed.
    """
    rows: list[Result] = []
    for language, lines in read_lines(texts).items():
        changed = change_lines(lines)
        rows += ratio_rows(
            language,
            {
                name: robustness_terms(engine, changed, threads=threads)
                for name, engine in engines.items()
            },
        )
    return Results(rows)


@dataclass(frozen=True, slots=True, eq=False)
class ChangedLines:
    """Lines of one language, and what every change makes of them; made by `change_lines`."""

    lines: Sequence[str]
    typos: Mapping[TypoKind, Sequence[Typo | None]]
    changed: Mapping[str, Sequence[str]]


def change_lines(lines: Sequence[str]) -> ChangedLines:
    """Every change of `lines`: made once, for all tokenizers."""
    return ChangedLines(
        lines,
        {kind: [typo(line, kind) for line in lines] for kind in TYPOS},
        {name: [change(line) for line in lines] for name, change in CHANGES.items()},
    )


def robustness_terms(engine: Engine, text: ChangedLines, *, threads: int = 1) -> dict[str, Terms]:
    """Numerators and denominators of each metric, (n_lines,) each, of one tokenizer."""
    lines = text.lines
    before = flat_spans(engine, lines, threads=threads)
    shares: dict[str, Terms] = {}
    local: dict[str, Terms] = {}
    for kind, found in text.typos.items():
        texts = [
            line if made is None else made.text for line, made in zip(lines, found, strict=True)
        ]
        after = flat_spans(engine, texts, threads=threads)
        is_changed = np.array([made is not None for made in found])
        shares[f"{kind}_change"] = _changed(before, (after.ids, after.offsets), is_changed)
        local[f"{kind}_locality"] = _kept(lines, before, after, found)
    for name, other in text.changed.items():
        is_changed = np.array([line != text for line, text in zip(lines, other, strict=True)])
        encoded = engine.encode_batch(other, threads=threads)
        shares[f"{name}_change"] = _changed(before, encoded, is_changed)
    return shares | local


def _changed(before: FlatSpans, after: tuple[Ids, Ints], is_changed: Flags) -> Terms:
    """Distance and the longer length of each line that was changed; zeros for the others."""
    ids, offsets = after
    distances = np.zeros(len(is_changed), dtype=np.int64)
    for line in np.flatnonzero(is_changed).tolist():
        distances[line] = _distance(
            before.ids[before.offsets[line] : before.offsets[line + 1]],
            ids[offsets[line] : offsets[line + 1]],
        )
    longer = np.maximum(np.diff(before.offsets), np.diff(offsets))
    return distances, longer * is_changed


def _distance(before: Ids, after: Ids) -> int:
    """Levenshtein's: ids put in, taken out or replaced."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise ImportError(
            "robustness needs rapidfuzz: pip install 'vocabshift[stats]'", name="rapidfuzz"
        ) from None
    return int(Levenshtein.distance(before.tolist(), after.tolist()))


def _kept(
    lines: Sequence[str], before: FlatSpans, after: FlatSpans, typos: Sequence[Typo | None]
) -> Terms:
    """Tokens with text outside of the mistyped word that stay, and all of them, of each line."""
    words = np.array([_word_bytes(line, made) for line, made in zip(lines, typos, strict=True)])
    encoded = [line.encode() for line in lines]
    room = [len(data) + abs(int(more)) for data, more in zip(encoded, words[:, 2], strict=True)]
    first = np.cumsum([0, *room[:-1]])  # where each line begins, with room for the longer version
    text = b"".join(data.ljust(size) for data, size in zip(encoded, room, strict=True))
    n_text = np.zeros(len(text) + 1, dtype=np.int64)  # bytes before each place that are no spaces
    np.cumsum(~np.isin(np.frombuffer(text, dtype=np.uint8), _SPACES), out=n_text[1:])

    base = first[before.line]
    begin, end, grown = words[before.line].T
    starts, ends = before.starts, before.ends
    in_front = n_text[base + np.minimum(ends, begin)] - n_text[base + np.minimum(starts, begin)]
    behind = n_text[base + np.maximum(ends, end)] - n_text[base + np.maximum(starts, end)]
    outside = in_front + behind > 0
    moved = starts + np.where((starts >= begin) & (behind > 0), grown, 0)
    found = _placed(after, after.starts, first)[after.ends > after.starts]
    stays = np.isin(_placed(before, moved, first), found)
    return before.per_line(outside & stays), before.per_line(outside)


def _word_bytes(line: str, made: Typo | None) -> tuple[int, int, int]:
    """Begin and end of the word in the line, and by how much it grew; all in bytes.

    Without a typo the whole line is that word: nothing is outside of it.
    """
    if made is None:
        return 0, len(line.encode()), 0
    begin = len(line[: made.begin].encode())
    end = begin + len(line[made.begin : made.end].encode())
    return begin, end, len(made.text.encode()) - len(line.encode())


def _placed(spans: FlatSpans, starts: Ints, first: Ints) -> Ints:
    """Each token with its place among all lines (which begin at `first`), as one number."""
    return np.asarray(((starts + first[spans.line]) << 24) | spans.ids)  # ids are below 2 ** 24
