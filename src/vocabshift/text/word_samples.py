"""Distinct words by language, drawn from text: what the weights of languages are judged on.

Owns the drawing. Distinct words, not running text: so the rare ones weigh as much as the frequent
ones, and a narrow collection with many repetitions does not look easier than it is. As many of each
language, for the more text, the rarer the words in it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WORDS = 5_000
"""Distinct words drawn of a language, where it has as many."""
_DOCUMENTS = 4_000
_CHARACTERS = 2_000  # of a document that are looked at: one may be a whole file


@dataclass(frozen=True, slots=True)
class WordSample:
    """What was drawn of one language."""

    words: tuple[str, ...]  # distinct, each with a space before it
    characters_per_byte: float  # Unicode characters, of all documents

    @property
    def n_characters(self) -> int:
        """Of the words, their spaces included."""
        return sum(map(len, self.words))


def draw_words(texts: Iterable[tuple[str | None, str]]) -> Mapping[str | None, WordSample]:
    """Words of whole documents, which are drawn at random with a fixed seed.

    `texts` are (language, document); memory does not grow with their number. A language without
    a word is left out.
    """
    drawn: dict[str | None, list[str]] = {}
    seen: dict[str | None, int] = {}
    sizes: dict[str | None, list[int]] = {}
    chance = random.Random(0)
    for language, text in texts:
        characters_and_bytes = sizes.setdefault(language, [0, 0])
        characters_and_bytes[0] += len(text)
        characters_and_bytes[1] += len(text.encode())
        documents = drawn.setdefault(language, [])
        seen[language] = seen.get(language, 0) + 1
        place = chance.randrange(seen[language])
        if len(documents) < _DOCUMENTS:
            documents.append(documents[place] if place < len(documents) else text[:_CHARACTERS])
            documents[place] = text[:_CHARACTERS]
        elif place < _DOCUMENTS:
            documents[place] = text[:_CHARACTERS]
    return {
        language: WordSample(words, sizes[language][0] / sizes[language][1])
        for language, documents in drawn.items()
        if (words := _distinct(documents))
    }


def _distinct(documents: Iterable[str]) -> tuple[str, ...]:
    words: dict[str, None] = {}
    for document in documents:
        words.update(dict.fromkeys(document.split()))
        if len(words) >= WORDS:
            break
    return tuple(" " + word for word in list(words)[:WORDS])
