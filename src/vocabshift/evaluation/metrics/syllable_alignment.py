"""Do tokens respect the units that readers see: characters, grapheme clusters, syllables?

Owns the metrics and their counts. The allowed borders of a line are found once for each text, and
each tokenizer's borders are looked up there. `text.writing` decides which borders are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.counts import Ints
from vocabshift.evaluation.lines.placing import FlatSpans, flat_spans
from vocabshift.evaluation.lines.texts import read_lines
from vocabshift.evaluation.metrics.metric import Better, Metric, Terms, ratio_rows
from vocabshift.results import Result, Results
from vocabshift.text.writing import grapheme_borders, syllable_borders
from vocabshift.tokenizer.engine import Engine


def _metric(name: str, label: str, note: str, better: Better = "lower") -> Metric:
    return Metric(name, "alignment", label, note, better, is_spoilt_by_loss=True, is_compared=True)


METRICS = (
    _metric("character_cut_rate", "cut characters", "share of tokens that cut one"),
    _metric("grapheme_cut_rate", "cut graphemes", "share of tokens that cut one"),
    _metric("syllable_cut_rate", "cut syllables", "share of tokens that cut one"),
    _metric("syllable_border_rate", "cuts between syllables", "share of all cuts", "higher"),
    _metric(
        "whole_syllable_rate", "whole syllables", "share of syllables that nothing cuts", "higher"
    ),
)
"""Of all tokens, those that begin or end inside a character; inside an extended grapheme cluster
(UAX 29); inside an orthographic syllable. Of all places where a line is cut, those at a border of
syllables. Of all syllables that could be cut (those of more than one byte), those that no token
border cuts. A cut inside a character cuts its cluster and its syllable too; text outside of
syllables may be cut between any two characters, but not before a mark."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class CutPlaces:
    """Every place in the lines of one language: a line of n bytes has n + 1, from its beginning to
    its end. The arrays are (n_places,), but those of the units. Made by `cut_places`."""

    lines: Sequence[str]
    first: Ints  # (n_lines,): the beginning of each line
    last: Ints  # (n_lines,): its end
    characters: Flags  # whether a cut there cuts no character
    graphemes: Flags
    syllables: Flags
    unit_begins: Ints  # (n_units,): of each syllable of more than one byte
    unit_ends: Ints

    def per_line(self, flags: Flags) -> Ints:
        """How many places of each line have a flag set: (n_lines,)."""
        return np.add.reduceat(flags.astype(np.int64), self.first)


def syllable_alignment(engines: Mapping[str, Engine], texts: Any, *, threads: int = 1) -> Results:
    """METRICS for each engine and language, with intervals over lines.

    `texts` are what `texts.read_lines` takes, and errors are its errors. A metric that says nothing
    of a text (no syllable of ASCII has two bytes) has no row there.
    """
    rows: list[Result] = []
    for language, lines in read_lines(texts).items():
        places = cut_places(lines)
        rows += ratio_rows(
            language,
            {
                name: alignment_terms(flat_spans(engine, lines, threads=threads), places)
                for name, engine in engines.items()
            },
        )
    return Results(rows)


def alignment_terms(spans: FlatSpans, places: CutPlaces) -> dict[str, Terms]:
    """Numerators and denominators of each metric, (n_lines,) each, of one tokenizer, whose tokens
    of the lines are `spans`."""
    base = places.first[spans.line]
    starts, ends = spans.starts + base, spans.ends + base
    in_text = ends > starts
    n_tokens = np.diff(spans.offsets)

    def cutting(borders: Flags) -> Terms:
        return spans.per_line(in_text & ~(borders[starts] & borders[ends])), n_tokens

    cuts = np.zeros(len(places.syllables), dtype=np.bool_)
    cuts[starts[in_text]] = cuts[ends[in_text]] = True
    cuts[places.first] = cuts[places.last] = False
    return {
        "character_cut_rate": cutting(places.characters),
        "grapheme_cut_rate": cutting(places.graphemes),
        "syllable_cut_rate": cutting(places.syllables),
        "syllable_border_rate": (places.per_line(cuts & places.syllables), places.per_line(cuts)),
        "whole_syllable_rate": _whole(places, cuts),
    }


def _whole(places: CutPlaces, cuts: Flags) -> Terms:
    """Units that no cut is inside of, and all units, by line."""
    running = np.zeros(len(cuts) + 1, dtype=np.int64)
    np.cumsum(cuts, out=running[1:])
    inside = running[places.unit_ends] - running[places.unit_begins + 1]
    of_line = np.searchsorted(places.first, places.unit_begins, side="right") - 1
    n_lines = len(places.first)
    return (
        np.bincount(of_line[inside == 0], minlength=n_lines),
        np.bincount(of_line, minlength=n_lines),
    )


def cut_places(lines: Sequence[str]) -> CutPlaces:
    """Where `lines` (at least one) may be cut: found once, for all tokenizers."""
    text = "\n".join(lines)  # so that each line has a place for its end
    data = np.frombuffer(text.encode() + b"\n", dtype=np.uint8)
    characters = (data & 0xC0) != 0x80
    place_of = np.flatnonzero(characters)  # of each character, and of the end
    (last,) = np.nonzero(data == ord("\n"))
    first = np.append(0, last[:-1] + 1)
    graphemes, syllables = np.zeros((2, len(data)), dtype=np.bool_)
    graphemes[place_of[grapheme_borders(text)]] = True
    syllables[place_of] = syllable_borders(text)
    for may_cut in (graphemes, syllables):
        may_cut[first] = may_cut[last] = True
    borders = np.flatnonzero(syllables)
    begins, ends = borders[:-1], borders[1:]
    is_unit = (ends - begins > 1) & ~np.isin(begins, last)
    return CutPlaces(
        lines, first, last, characters, graphemes, syllables, begins[is_unit], ends[is_unit]
    )
