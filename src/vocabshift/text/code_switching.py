"""Code-switched text from parallel lines: a rule, written down so that others can repeat it.

Text in which people change the language within a sentence is rare in corpora. Here it is made of
two translations of one sentence: both are cut into the same number of spans of whole words, at the
same relative places, and the spans are taken in turn from one and from the other. There is no
chance in it: same lines, same text.

    spans    = half of the words of both lines, over 4, rounded, but at least 2, and at most the
               words of the shorter line
    span i   = words round(i * n / spans) .. round((i + 1) * n / spans) of a line of n words
    language = the first one for even i in even lines and for odd i in odd lines, counted from 0

Halves are rounded up. So spans are four words long on average (a phrase), both languages open
every other line, and a line in which one translation has one word is not switched at all. Owns
the rule. Knows nothing of tokenizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vocabshift.errors import CorpusError

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
