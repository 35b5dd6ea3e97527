"""The cost in tokens of text that switches languages within a sentence.

Real code-switched text is rare in corpora. Here it is made from two translations of one sentence by
a deterministic rule: both lines are cut into the same number of spans of whole words, at the same
relative positions, and the spans are taken in turn from each language.

    spans    = half of the words of both lines, over 4, rounded, but at least 2, and at most the
               words of the shorter line
    span i   = words round(i * n / spans) .. round((i + 1) * n / spans) of a line of n words
    language = the first one for even i in even lines and for odd i in odd lines, counted from 0

Halves are rounded up. So spans are four words long on average (a phrase), both languages open
every other line, and a line in which one translation has one word is not switched at all.

Fertility, bytes per token and all else are measured on the mixed lines as on any text, under the
label of the pair ("hi+en").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.counts import Ints
from vocabshift.evaluation.lines.placing import FlatSpans, flat_spans
from vocabshift.evaluation.lines.texts import Lines, check_parallel, read_lines
from vocabshift.evaluation.metrics.metric import Metric, Terms, needing, ratio_rows
from vocabshift.results import Result, Results
from vocabshift.tokenizer.engine import Engine

SPAN_WORDS = 4
"""Words of a span, on average."""


@dataclass(frozen=True, slots=True)
class MixedLine:
    """A line in two languages; words are joined by one space."""

    text: str
    switches: tuple[int, ...]  # offset in characters of each space where the language changes
    n_words: tuple[int, int]  # taken from the line of each language


def switch_codes(
    first: Sequence[str], second: Sequence[str], *, names: tuple[str, str] = ("first", "second")
) -> list[MixedLine]:
    """Mix parallel lines by the rule at the head of this file.

    Lines that are blank in both are left out. Raises CorpusError, with the `names`, for texts that
    are not parallel: of different length, or blank in one language only.
    """
    if len(first) != len(second):
        raise CorpusError(
            f"{names[0]} has {len(first)} lines and {names[1]} has {len(second)}: code-switched "
            "text needs parallel lines, line i of both saying the same"
        )
    mixed = []
    for number, pair in enumerate(zip(first, second, strict=True)):
        words = (pair[0].split(), pair[1].split())
        if not words[0] and not words[1]:
            continue
        if not words[0] or not words[1]:
            blank = names[0] if not words[0] else names[1]
            raise CorpusError(
                f"line {number + 1} is blank in {blank} alone: code-switched text needs parallel "
                "lines, line i of both saying the same"
            )
        mixed.append(_mixed(words, number % 2))
    if not mixed:
        raise CorpusError(f"no line of text for {' and '.join(names)}; there is nothing to mix")
    return mixed


def parse_pair(label: str) -> tuple[str, str]:
    """The two languages of a label such as "hi+en"; ValueError for anything else."""
    languages = label.split("+")
    if len(languages) != 2 or not all(languages) or languages[0] == languages[1]:
        raise ValueError(f"{label!r} names no pair of languages; write two, like hi+en")
    return languages[0], languages[1]


def _mixed(words: tuple[list[str], list[str]], opening: int) -> MixedLine:
    """One line; `opening` is the language (0 or 1) of its first span."""
    total = len(words[0]) + len(words[1])
    n_spans = min(max(_rounded(total, 2 * SPAN_WORDS), 2), len(words[0]), len(words[1]))
    spans, taken = [], [0, 0]
    for number in range(n_spans):
        language = (opening + number) % 2
        n = len(words[language])
        begin, end = _rounded(number * n, n_spans), _rounded((number + 1) * n, n_spans)
        spans.append(" ".join(words[language][begin:end]))
        taken[language] += end - begin
    switches, at = [], -1
    for span, _ in pairwise(spans):
        at += 1 + len(span)
        switches.append(at)
    return MixedLine(" ".join(spans), tuple(switches), (taken[0], taken[1]))


def _rounded(numerator: int, denominator: int) -> int:
    """The quotient, rounded; halves up."""
    return (2 * numerator + denominator) // (2 * denominator)


METRICS = (
    Metric(
        "code_switch_premium",
        "code switching",
        "code-switching premium",
        "tokens / tokens of the same words in one language",
        "lower",
        needs=needing("code switching"),
        is_spoilt_by_loss=True,
    ),
    Metric(
        "switch_span_rate",
        "code switching",
        "tokens over a switch",
        "share of changes of language inside of a token",
        needs=needing("code switching"),
    ),
)
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
    lines: Lines,
    pairs: Iterable[str],
    files: Mapping[str, str] | None = None,
    blank: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, MixedText]:
    """{"hi+en": mixed text} of parallel lines (of `texts.read_lines`), for each of the `pairs`.

    `files` and `blank` are those of `check_parallel`. ValueError for a label that is no
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
        check_parallel(dict(zip(names, (first, second), strict=True)), label, files, blank)
        mixed[label] = MixedText(switch_codes(first, second, names=names), (first, second))
    return mixed


def code_switching(
    engines: Mapping[str, Engine], texts: Any, pairs: Iterable[str], *, threads: int = 1
) -> Results:
    """METRICS for each engine and pair ("hi+en"), with intervals over lines.

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
