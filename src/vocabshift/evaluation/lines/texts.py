"""The lines that are measured: accepted texts, and the definition of a line.

Owns reading texts into lines by language (a document is cut at its newlines, without "\n" or
"\r\n"; blank lines are skipped) and the check that texts are parallel. Corpus weights play no
part: each line counts once. Lines are kept in memory, about the size of the text. And what a
normalizer does to a text (Table 15 of the Indic study). Knows nothing of tokenizers.

And the bins of `fertility_bin_…`. A word's rank is one plus the number of words that are more
frequent, in the text itself or in a corpus of its language; words of one frequency have one rank,
so that no tie is broken by chance. Bins are powers of ten of the rank; "unseen" is for words that
the corpus does not hold. Words are taken as they stand: case and punctuation belong to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import CorpusError
from vocabshift.results import UNLABELLED, Result, Results, with_sources
from vocabshift.text.corpus import Corpus
from vocabshift.text.normalize import normalizer_function
from vocabshift.text.readers import FileSource

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
    lines: Mapping[str, Sequence[str]],
    what: str,
    files: Mapping[str, str] | None = None,
    blank: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """CorpusError where languages differ in their number of lines; `what` needs parallel text.

    That line n says the same in every language cannot be seen; that the numbers differ can, and
    that each of two texts has a line `blank` (of `blank_lines`) that the other has not, so that
    others are shifted. `files` tells where the text of each language came from.
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
    known = blank or {}
    numbers = {language: set(known[language]) for language in lines if language in known}
    for one, other in combinations(numbers, 2):
        alone = (numbers[one] - numbers[other], numbers[other] - numbers[one])
        if all(alone):
            found = " and ".join(
                f"line {min(of)} is blank in {language}{_place(language, files)} alone"
                for language, of in zip((one, other), alone, strict=True)
            )
            raise CorpusError(
                f"{what} needs parallel texts, line n of each saying the same: {found}; remove "
                "these lines from both"
            )


def blank_lines(texts: Any) -> dict[str, tuple[int, ...]]:
    """Numbers of the blank lines, from 1, that have text after them, by language.

    Of a `Corpus` those of its files of text, which are read once more; of other texts those of
    lists, for what is read once is gone.
    """
    if isinstance(texts, Corpus):
        sources = [(part, part.source) for part in texts.parts]
        whole = [
            replace(part, source=replace(source, unit="file"))
            for part, source in sources
            if isinstance(source, FileSource)
        ]
        texts = Corpus(whole) if whole else {}
    elif isinstance(texts, Mapping):
        texts = {label: text for label, text in texts.items() if isinstance(text, list | tuple)}
    n_lines: Counter[str] = Counter()
    last: Counter[str] = Counter()  # that is not blank
    blank: dict[str, list[int]] = {}
    for language, text in _labelled(texts):
        of_language = blank.setdefault(language, [])
        for line in [] if text is None else text.removesuffix("\n").split("\n"):
            n_lines[language] += 1
            if line.strip():
                last[language] = n_lines[language]
            else:
                of_language.append(n_lines[language])
    return {
        language: tuple(number for number in numbers if number < last[language])
        for language, numbers in blank.items()
    }


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
    *ended, last = text.split("\n")
    lines = [*(line.removesuffix("\r") for line in ended), last]
    return [line for line in lines if line.strip()]


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
