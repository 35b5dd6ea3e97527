"""A corpus in two: one document of every so many is held out of training, to be judged on.

Owns the division, which depends on nothing but the order of the documents. Knows nothing of what
the two parts are used for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vocabshift.text.corpus import Corpus, Documents
from vocabshift.text.readers import StandardInputSource

EVERY = 20
"""One document of so many is held out."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The held-out documents of a source, or the others."""

    first: int  # place of the first document that is held out
    every: int
    is_held_out: bool

    @property
    def name(self) -> str:
        """For messages."""
        held_out = f"every {self.every}th document"
        return held_out if self.is_held_out else f"without {held_out}"

    @property
    def facts(self) -> list[Any]:
        """For `input_key`."""
        return ["held out", self.first, self.every, self.is_held_out]

    def n_bytes_hint(self, n_bytes: int) -> int:
        """Its share."""
        held_out = n_bytes // self.every
        return held_out if self.is_held_out else n_bytes - held_out

    def of(self, blocks: Iterator[Documents]) -> Iterator[Documents]:
        """Every so many documents, or the rest."""
        seen = 0
        for documents in blocks:
            places = np.arange(seen, seen + len(documents))
            seen += len(documents)
            is_taken = (places % self.every == self.first) == self.is_held_out
            if is_taken.any():
                yield documents.where(is_taken)


def hold_out(corpus: Corpus, every: int = EVERY) -> tuple[Corpus, Corpus]:
    """(training, held out): the first document of each language and every `every`-th behind it.

    The second source of a language starts with its second document, and so on: many sources of
    one document each are divided too. ValueError for standard input, which cannot be read for both.
    """
    if any(isinstance(part.source, StandardInputSource) for part in corpus.parts):
        raise ValueError("standard input can be read only once; write the text to a file first")

    firsts = []
    n_sources: Counter[str | None] = Counter()
    for part in corpus.parts:
        # Behind its i-th source a language has i documents at least.
        firsts.append(-n_sources[part.language] % every)
        n_sources[part.language] += 1

    def part_of(is_held_out: bool) -> Corpus:
        return Corpus(
            part.choosing(HeldOut(first, every, is_held_out))
            for part, first in zip(corpus.parts, firsts, strict=True)
        )

    return part_of(False), part_of(True)
