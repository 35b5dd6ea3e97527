"""The words of lines, and the tokens of words.

Owns where words are (runs between whitespace, as `str.split` cuts), which of them a token cuts, and
how tokens are shared out among words: a token that touches several words counts for each of them in
equal parts, one that is whitespace alone for the word after it (the last one at the end of a line),
so that the parts add up to the tokens of the line.

And the languages that are written without spaces between words: which these are, by their text, and
where ICU cuts it (UAX 29 with ICU's dictionaries for Thai, Lao, Khmer, Burmese, Chinese and
Japanese). A run between whitespace is cut in front of each segment with a letter or digit but the
first one, so that punctuation belongs to a word, as it does elsewhere. Without icu4py (extra
`words`) such a language has no words: figures by word are withheld, for a run between whitespace is
a clause.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import regex

from vocabshift.evaluation.lines.token_facts import Int64, parts_of, running_sums

Cut = Callable[[str], Iterable[str]]
"""The segments of a run, which joined are the run."""

_LETTER = regex.compile(r"\p{L}")
_UNSPACED = regex.compile(
    r"(?=\p{L})[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Han}\p{Hiragana}\p{Katakana}]"
)
_SAMPLE = 100_000  # characters of a language that decide


def no_words(run: str) -> Iterable[str]:
    """Stands for the words of a language that cannot be cut."""
    raise AssertionError(f"the words of {run!r} are not known")


def cuts_of(lines: Mapping[str, Sequence[str]]) -> dict[str, Cut]:
    """How the words of each language without spaces are found; `no_words` where ICU is missing.

    A language has no spaces if more than half of the letters at the beginning of its text are of
    scripts without them.
    """
    cut = _icu if find_spec("icu4py") is not None else no_words
    return {language: cut for language, of_language in lines.items() if is_unspaced(of_language)}


def withheld(cuts: Mapping[str, Cut], metrics: Sequence[str]) -> str:
    """Why these metrics have no rows of some languages; "" if all words are known."""
    languages = [language for language, cut in cuts.items() if cut is no_words]
    if not languages:
        return ""
    return (
        f"{', '.join(metrics)}: no rows of {', '.join(languages)}, written without spaces between "
        "words; pip install 'vocabshift[words]' finds the words (ICU)"
    )


def is_unspaced(lines: Iterable[str]) -> bool:
    """Whether text is mostly of scripts that put no space between words."""
    sample: list[str] = []
    left = _SAMPLE
    for line in lines:
        sample.append(line[:left])
        left -= len(line)
        if left <= 0:
            break
    counts = Counter("".join(sample))
    unspaced = sum(n for character, n in counts.items() if _UNSPACED.match(character))
    return 2 * unspaced > sum(n for character, n in counts.items() if _LETTER.match(character))


def inner_words(line: str, cut: Cut) -> Iterator[int]:
    """Where words begin inside of runs between whitespace, in bytes of UTF-8."""
    place = end = 0  # of the run before, in bytes and in characters
    for run in re.finditer(r"\S+", line):
        place += len(line[end : run.start()].encode())
        end = run.end()
        has_word = False
        for segment in cut(run.group()):
            is_word = any(map(str.isalnum, segment))
            if is_word and has_word:
                yield place
            has_word |= is_word
            place += len(segment.encode())


def _icu(run: str) -> Iterable[str]:
    # The root locale: the dictionary follows from the script, never from a label.
    from icu4py.breakers import WordBreaker

    segments: Iterable[str] = WordBreaker(run, "root")
    return segments


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


def lay_out(lines: Sequence[str], cut: Cut | None = None) -> Layout:
    """The layout of lines, none of which is blank; `cut` finds words in what has no spaces."""
    text = "".join(lines)
    none = np.zeros(0, dtype=np.bool_)
    is_text = np.concatenate([none, *(_is_text(text[part]) for part in parts_of(len(text)))])
    line_starts = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum([len(line.encode()) for line in lines], out=line_starts[1:])
    begins = is_text.copy()
    begins[1:] &= ~is_text[:-1]
    begins[line_starts[:-1]] = is_text[line_starts[:-1]]
    if cut is not None:
        for line, start in zip(lines, line_starts.tolist(), strict=False):
            begins[[start + place for place in inner_words(line, cut)]] = True
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
