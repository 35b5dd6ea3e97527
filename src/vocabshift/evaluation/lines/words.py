"""Words of lines and the tokens that they are cut into.

Owns where words are (runs between whitespace, as `str.split` cuts), which of them a token cuts,
and how tokens are shared out among words: a token that touches several words counts for each of
them in equal parts, one that is whitespace alone for the word after it (the last one at the end
of a line), so that the parts add up to the tokens of the line. Knows nothing of tokenizers.

And the bins of `fertility_bin_…`. A word's rank is one plus the number of words that are more
frequent, in the text itself or in a corpus of its language; words of one frequency have one rank,
so that no tie is broken by chance. Bins are powers of ten of the rank; "unseen" is for words that
the corpus does not hold. Words are taken as they stand: case and punctuation belong to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.token_facts import Int64, parts_of, running_sums

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_BEYOND = 0x3001  # U+3000 is the last whitespace of Unicode
_IS_SPACE = np.array([chr(c).isspace() for c in range(_BEYOND + 1)])


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Lines laid end to end as UTF-8, and the words in them."""

    line_starts: Int64  # (n_lines + 1,) in bytes
    words_before: Int64  # (n_bytes + 1,) words that begin before each byte
    is_inside: Bools  # (n_bytes + 1,) whether a cut in front of the byte cuts a word

    @property
    def line_words(self) -> Int64:
        """(n_lines + 1,) words in front of each line."""
        return self.words_before[self.line_starts]


def lay_out(lines: Sequence[str]) -> Layout:
    """The layout of lines, none of which is blank."""
    text = "".join(lines)
    none = np.zeros(0, dtype=np.bool_)
    is_text = np.concatenate([none, *(_is_text(text[part]) for part in parts_of(len(text)))])
    line_starts = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum([len(line.encode()) for line in lines], out=line_starts[1:])
    begins = is_text.copy()
    begins[1:] &= ~is_text[:-1]
    begins[line_starts[:-1]] = is_text[line_starts[:-1]]
    words_before = running_sums(len(begins), begins.__getitem__)
    is_inside = np.zeros(len(is_text) + 1, dtype=np.bool_)
    is_inside[:-1] = is_text & ~begins
    return Layout(line_starts, words_before, is_inside)


def _is_text(text: str) -> Bools:
    """Of every byte of UTF-8, whether it is of a character that is not whitespace."""
    characters = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    sizes = 1 + (characters > 0x7F) + (characters > 0x7FF).astype(np.int64) + (characters > 0xFFFF)
    return np.repeat(~_IS_SPACE[np.minimum(characters, _BEYOND)], sizes)


def cut_words(layout: Layout, starts: Int64) -> Int64:
    """Words of each line, (n_lines,), in which a token begins after their first byte.

    `starts`: where each token begins, in bytes of the layout. A superword that covers a word
    does not cut it.
    """
    is_cut = np.zeros(int(layout.words_before[-1]), dtype=np.bool_)
    for part in parts_of(len(starts)):
        here = starts[part]
        is_cut[layout.words_before[here[layout.is_inside[here]]] - 1] = True
    return np.diff(running_sums(len(is_cut), is_cut.__getitem__)[layout.line_words])


def tokens_of_words(layout: Layout, starts: Int64, ends: Int64, line: Int64) -> Floats:
    """Tokens of each word, (n_words,), shared out by the rule at the head of this file.

    `starts` and `ends`: bytes of each token; `line`: the number of its line.
    """
    line_words = layout.line_words
    first = layout.words_before[starts] - layout.is_inside[starts]
    touched = np.maximum(layout.words_before[ends] - first, 0)
    lone = touched == 0  # whitespace alone, or nothing
    first = np.where(lone, np.minimum(first, line_words[line + 1] - 1), first)
    touched = np.maximum(touched, 1)
    word = np.repeat(first - (np.cumsum(touched) - touched), touched) + np.arange(touched.sum())
    share = np.repeat(1.0 / touched, touched)
    return np.asarray(np.bincount(word, share, int(line_words[-1])), dtype=np.float64)


Bytes = npt.NDArray[np.uint8]

BINS = ("1_10", "11_100", "101_1000", "1001_10000", "10001_up", "unseen")
"""Ranks in each bin; the last holds the words that the frequencies do not know."""

_UNSEEN = len(BINS) - 1
_EDGES = np.array([10, 100, 1000, 10_000])


def bins_of_words(frequencies: Mapping[str, int]) -> dict[str, int]:
    """Index into BINS by word."""
    words = list(frequencies)
    counts = np.fromiter(frequencies.values(), np.int64, len(words))
    ascending = np.sort(counts)
    ranks = 1 + len(words) - np.searchsorted(ascending, counts, side="right")
    found = np.searchsorted(_EDGES, ranks, side="left")
    return dict(zip(words, found.tolist(), strict=True))


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def bins_of_lines(lines: Sequence[str], bins: Mapping[str, int]) -> Bytes:
    """Index into BINS of every word of the lines, (n_words,)."""
    found = [bins.get(word, _UNSEEN) for line in lines for word in line.split()]
    return np.array(found, dtype=np.uint8)
