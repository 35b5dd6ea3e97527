"""The lines that are measured: accepted texts, and the definition of a line.

Owns reading texts into lines by language (a document is cut at its newlines, without "\n" or
"\r\n"; blank lines are skipped) and the check that texts are parallel. Corpus weights play no
part: each line counts once. Lines are kept in memory, about the size of the text. And what a
normalizer does to a text (Table 15 of the Indic study). Knows nothing of tokenizers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from vocabshift.errors import CorpusError
from vocabshift.results import UNLABELLED, Result, Results
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
    for language, lines in read_lines(texts).items():
        words = Counter(word for line in lines for word in line.split())
        changed = [word for word in words if normalize(word) != word]
        n_words = words.total()
        share = sum(words[word] for word in changed) / n_words
        unique_share = len(changed) / len(words)
        rows.append(Result(normalizer, language, WORDS, share, n_words))
        rows.append(Result(normalizer, language, UNIQUE_WORDS, unique_share, len(words)))
    return Results(rows)
