"""Words of languages that are written without spaces between them.

Owns which languages these are, by their text, and where ICU cuts it (UAX 29 with ICU's dictionaries
for Thai, Lao, Khmer, Burmese, Chinese and Japanese). A run between whitespace is cut in front of
each segment with a letter or digit but the first one, so that punctuation belongs to a word, as it
does elsewhere. Without icu4py (extra `words`) such a language has no words: figures by word are
withheld, for a run between whitespace is a clause.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec

import regex

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
