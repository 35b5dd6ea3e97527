"""The lines that are measured: accepted texts, the definition of a line, and the words of lines.

Owns reading texts into lines by language (a document is cut at its newlines, without "\n" or
"\r\n"; blank lines are skipped) and the check that texts are parallel. Corpus weights play no
part: each line counts once. Lines are kept in memory, about the size of the text. And what a
normalizer does to a text (Table 15 of the Indic study). Knows nothing of tokenizers.

Owns where words are (runs between whitespace, as `str.split` cuts; `words` cuts the runs of scripts
that put no space between words further), which of them a token cuts, and how tokens are shared out
among words: a token that touches several words counts for each of them in equal parts, one that is
whitespace alone for the word after it (the last one at the end of a line), so that the parts add up
to the tokens of the line.

And the bins of `fertility_bin_…`. A word's rank is one plus the number of words that are more
frequent, in the text itself or in a corpus of its language; words of one frequency have one rank,
so that no tie is broken by chance. Bins are powers of ten of the rank; "unseen" is for words that
the corpus does not hold. Words are taken as they stand: case and punctuation belong to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.token_facts import Int64, parts_of, running_sums
from vocabshift.evaluation.lines.words import Cut, inner_words
from vocabshift.results import UNLABELLED, Result, Results, with_sources
from vocabshift.text.normalize import normalizer_function

Lines = dict[str, list[str]]
"""Lines by language, in order of first appearance."""


def read_lines(texts: Any) -> Lines:
    """Lines of `texts`: a `Corpus`, {language: iterable of str}, or a list of str; read once.

    Raises CorpusError for a language without a line of text, TypeError for anything else.
    """
    lines: Lines = {}
    for language, text in _labelled(texts):
        of_language = lines.setdefault(language, [])
        if text is not None:
            of_language += _lines(language, text)
    empty = [language for language, found in lines.items() if not found]
    if empty:
        files = files_of(texts)
        named = ", ".join(language + _place(language, files) for language in empty)
        raise CorpusError(f"no line of text for {named}; leave it out or give it text")
    if not lines:
        raise CorpusError("the texts are empty: at least one line that is not blank is needed")
    return lines


def check_parallel(
    lines: Mapping[str, Sequence[str]], what: str, files: Mapping[str, str] | None = None
) -> None:
    """CorpusError where languages differ in their number of lines; `what` needs parallel text.

    That line n says the same in every language cannot be seen; that the numbers differ can.
    `files` tells where the text of each language came from.
    """
    counts = {language: len(of_language) for language, of_language in lines.items()}
    if len(set(counts.values())) > 1:
        named = ", ".join(
            f"{language}{_place(language, files)} has {count} lines"
            for language, count in counts.items()
        )
        raise CorpusError(
            f"{what} needs parallel texts, line n of each saying the same: {named} "
            "(blank lines left out)"
        )


def files_of(texts: Any) -> dict[str, str]:
    """Where the text of each language came from, for a `Corpus`; nothing for other texts."""
    files: dict[str, str] = {}
    for part in getattr(texts, "parts", ()):
        label = UNLABELLED if part.language is None else part.language
        files[label] = f"{files[label]}, {part.source.name}" if label in files else part.source.name
    return files


def _place(language: str, files: Mapping[str, str] | None) -> str:
    return f" ({files[language]})" if files and language in files else ""


def _labelled(texts: Any) -> Iterator[tuple[str, str | None]]:
    """(language, text) pairs of the texts; a pair without text announces a language."""
    if isinstance(texts, list | tuple):
        texts = {None: texts}
    if isinstance(texts, Mapping):
        for label, of_language in texts.items():
            language = UNLABELLED if label is None else str(label)
            if isinstance(of_language, str | bytes) or not isinstance(of_language, Iterable):
                raise TypeError(
                    f"the texts of {language!r} are {type(of_language).__name__}; "
                    "give an iterable of str, such as a list of lines"
                )
            yield language, None
            for text in of_language:
                yield language, text
    elif hasattr(texts, "texts"):
        for label in texts.languages:
            yield (UNLABELLED if label is None else label), None
        for label, text in texts.texts():
            yield (UNLABELLED if label is None else label), text
    else:
        raise TypeError(
            f"texts is {type(texts).__name__}; give a Corpus or {{language: iterable of str}}"
        )


def _lines(language: str, text: Any) -> list[str]:
    """Lines of a document that are not blank, without their ending."""
    if not isinstance(text, str):
        raise TypeError(f"a text of {language!r} is {type(text).__name__}; str is needed")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"a line of {language} holds half a surrogate pair, which is not text: {error}"
        ) from None
    return [line.removesuffix("\r") for line in text.split("\n") if line.strip()]


WORDS = "words_changed"
UNIQUE_WORDS = "unique_words_changed"


def normalization_effect(texts: Any, normalizer: str) -> Results:
    """Shares of words, and of different words, that `normalizer` changes.

    A word is a run between whitespace, and is normalized on its own.
    `texts` is what `evaluate` takes. Two rows for each language: `words_changed` (`n` words) and
    `unique_words_changed` (`n` different words); the subject is the normalizer's name. ValueError
    for a normalizer that is not known, CorpusError for a language without text.
    """
    normalize = normalizer_function(normalizer)
    if normalize is None:
        raise ValueError("there is nothing to measure: the normalizer is none; name one")
    rows = []
    read = read_lines(texts)
    for language, lines in read.items():
        words = Counter(word for line in lines for word in line.split())
        changed = [word for word in words if normalize(word) != word]
        n_words = words.total()
        share = sum(words[word] for word in changed) / n_words
        unique_share = len(changed) / len(words)
        rows.append(Result(normalizer, language, WORDS, share, n_words))
        rows.append(Result(normalizer, language, UNIQUE_WORDS, unique_share, len(words)))
    return with_sources(rows, read, {})


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


def bins_of_texts(lines: Lines, frequencies: Any) -> dict[str, Bytes]:
    """Index into BINS of every word by language, from the text itself or from another corpus."""
    known = lines if frequencies is None else read_lines(frequencies)
    lacking = [language for language in lines if language not in known]
    if lacking and list(known) != [UNLABELLED]:
        raise CorpusError(
            f"the frequencies hold no text of {', '.join(lacking)}; add it, or one corpus without "
            "a label for all languages"
        )
    found = {}
    for language, of_language in lines.items():
        words = count_words(known.get(language) or known[UNLABELLED])
        ranked = bins_of_words(words)
        found[language] = bins_of_lines(of_language, ranked)
    return found
