"""A corpus in two: one document of every so many is held out of training, to be judged on.

Owns the division, which depends on nothing but the order of the documents. Knows nothing of what
the two parts are used for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from vocabshift.text.corpus import Corpus, Documents
from vocabshift.text.readers import Source, StandardInputSource

EVERY = 20
"""One document of so many is held out."""


@dataclass(frozen=True)
class _Part:
    """The held-out documents of a source, or the others."""

    whole: Source
    first: int  # place of the first document that is held out
    every: int
    is_held_out: bool

    @property
    def name(self) -> str:
        """For messages."""
        held_out = f"every {self.every}th document"
        return f"{self.whole.name} ({held_out if self.is_held_out else f'without {held_out}'})"

    @property
    def n_bytes_hint(self) -> int | None:
        """Of the whole source, all of which is read."""
        return self.whole.n_bytes_hint

    def read(self) -> Iterator[Documents]:
        """Its documents; blocks without any are left out."""
        seen = 0
        for documents in self.whole.read():
            places = np.arange(seen, seen + len(documents))
            seen += len(documents)
            chosen = (places % self.every == self.first) == self.is_held_out
            if chosen.any():
                starts, ends = documents.starts[chosen], documents.ends[chosen]
                yield replace(documents, starts=starts, ends=ends)


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
            replace(part, source=_Part(part.source, first, every, is_held_out))
            for part, first in zip(corpus.parts, firsts, strict=True)
        )

    return part_of(False), part_of(True)
