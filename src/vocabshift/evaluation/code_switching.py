"""What tokenizers pay for text that changes the language within a sentence.

Owns the metrics. How such text is made is `text.code_switching`'s rule; fertility, bytes per token
and all else are measured on the mixed lines as on any text, under the label of the pair ("hi+en").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.evaluation.bootstrap import Terms
from vocabshift.evaluation.counts import Ints
from vocabshift.evaluation.engine import Engine
from vocabshift.evaluation.flat_spans import FlatSpans, flat_spans
from vocabshift.evaluation.ratio_rows import Family, ratio_rows
from vocabshift.evaluation.texts import Lines, check_parallel, read_lines
from vocabshift.results import Result, Results
from vocabshift.text.code_switching import MixedLine, parse_pair, switch_codes

FAMILY: Family = {
    "code_switch_premium": ("lower", "tokens / tokens of the same words in one language alone"),
    "switch_span_rate": ("neither", "share of changes of the language inside of a token"),
}
"""Tokens of the mixed lines over what the same share of words costs in the lines of one language
each: 1 where changing the language is free. And of all places where the language changes, those
that lie inside of a token with text on both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class MixedText:
    """Lines in two languages, and the lines that they were made of; made by `mix`."""

    lines: Sequence[MixedLine]
    alone: tuple[Sequence[str], Sequence[str]]  # of each language, none of them blank

    @property
    def texts(self) -> list[str]:
        """The mixed lines, to be measured as any text."""
        return [line.text for line in self.lines]


def mix(
    lines: Lines, pairs: Iterable[str], files: Mapping[str, str] | None = None
) -> dict[str, MixedText]:
    """{"hi+en": mixed text} of parallel lines (of `texts.read_lines`), for each of the `pairs`.

    `files` tells where the text of each language came from. ValueError for a label that is no
    pair; CorpusError for a language without text, or for texts that are not parallel.
    """
    mixed = {}
    for label in pairs:
        names = parse_pair(label)
        if label in lines:
            raise ValueError(f"{label} is the label of a text already; give that another one")
        for language in names:
            if language not in lines:
                raise CorpusError(
                    f"{label} needs text of {language}, and there is only text of "
                    f"{', '.join(lines) or 'nothing'}"
                )
        first, second = (lines[language] for language in names)
        check_parallel(dict(zip(names, (first, second), strict=True)), label, files)
        mixed[label] = MixedText(switch_codes(first, second, names=names), (first, second))
    return mixed


def code_switching(
    engines: Mapping[str, Engine], texts: Any, pairs: Iterable[str], *, threads: int = 1
) -> Results:
    """The metrics of FAMILY for each engine and pair ("hi+en"), with intervals over lines.

    `texts` are what `texts.read_lines` takes, and parallel. Errors are its own and those of `mix`.
    """
    rows: list[Result] = []
    for label, text in mix(read_lines(texts), pairs).items():
        rows += ratio_rows(
            label,
            {
                name: code_switching_terms(engine, text, threads=threads)
                for name, engine in engines.items()
            },
        )
    return Results(rows)


def code_switching_terms(engine: Engine, text: MixedText, *, threads: int = 1) -> dict[str, Terms]:
    """Numerators and denominators of each metric, (n_lines,) each, of one tokenizer."""
    return {
        "code_switch_premium": _premium(engine, text, threads),
        "switch_span_rate": _spanned(engine, text.lines, threads),
    }


def _premium(engine: Engine, text: MixedText, threads: int) -> Terms:
    """Tokens of each mixed line, and of its words as each language alone pays for them."""
    expected = np.zeros(len(text.lines))
    for language, own in enumerate(text.alone):
        taken = np.array([line.n_words[language] for line in text.lines])
        words = np.array([len(line.split()) for line in own])
        expected += _n_tokens(engine, own, threads) * taken / words
    return _n_tokens(engine, text.texts, threads), expected


def _n_tokens(engine: Engine, lines: Sequence[str], threads: int) -> Ints:
    return np.diff(engine.encode_batch(lines, threads=threads)[1])


def _spanned(engine: Engine, lines: Sequence[MixedLine], threads: int) -> Terms:
    """Switches of each line that a token spans, and all switches."""
    spans = flat_spans(engine, [line.text for line in lines], threads=threads)
    numbers, places = [], []
    for number, line in enumerate(lines):
        for at in line.switches:
            numbers.append(number)
            places.append(len(line.text[:at].encode()))
    of_line = np.array(numbers, dtype=np.int64)
    spanned = _is_inside(spans, of_line, np.array(places, dtype=np.int64))
    n_lines = len(lines)
    return (
        np.bincount(of_line[spanned], minlength=n_lines),
        np.bincount(of_line, minlength=n_lines),
    )


def _is_inside(spans: FlatSpans, of_line: Ints, places: Ints) -> Any:
    """Whether the space at each place of a line has text of its own token on both sides."""
    in_text = spans.ends > spans.starts
    longest = int(max(spans.ends.max(initial=0), places.max(initial=0))) + 2
    starts = (spans.starts + spans.line * longest)[in_text]
    ends = (spans.ends + spans.line * longest)[in_text]
    at = places + of_line * longest
    before = np.searchsorted(starts, at, side="left") - 1  # the last token that begins before it
    return (before >= 0) & (np.append(ends, -1)[before] > at + 1)
