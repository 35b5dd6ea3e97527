"""So many bytes of each language, drawn at random and the same ones every time.

Files are often sorted by source, so that their first megabytes are no sample of them. Every
document gets a number from the seed, its language and its place; those with the lowest numbers are
taken, as many as fit, in the order in which they stand. Memory is constant: the first pass only
adds up bytes by the leading bits of the number. Owns the draw; knows nothing of files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError
from vocabshift.text.documents import Documents
from vocabshift.text.readers import Source

_BITS = 20
"""A language is taken to within a millionth of its bytes."""


@dataclass(eq=False)
class LanguageBudget:
    """What is drawn of one language: `n_bytes` of all its sources together, at the most."""

    language: str | None
    n_bytes: int
    seed: int
    sources: Sequence[Source]

    @cached_property
    def limit(self) -> int:
        """Documents with a number below it are taken; reads the text once.

        CorpusError where there is text, but none of it fits.
        """
        sizes = np.zeros(1 << _BITS, dtype=np.int64)
        for place, source in enumerate(self.sources):
            numbers = _Numbers(self, place)
            for documents in source.read():
                lengths = documents.ends - documents.starts
                found = np.bincount(numbers.next(len(documents)), lengths, 1 << _BITS)
                sizes += found.astype(np.int64)
        total = np.cumsum(sizes)
        limit = int(np.searchsorted(total, self.n_bytes, side="right"))
        if total[-1] > 0 and (limit == 0 or total[limit - 1] == 0):
            of = "the text" if self.language is None else repr(self.language)
            raise CorpusError(
                f"{self.n_bytes:,} bytes of {of} are asked for, and the document drawn first is "
                "longer; give more"
            )
        return limit

    @property
    def known_bytes(self) -> int | None:
        """Bytes of all sources, where that is known without reading."""
        hints = [source.n_bytes_hint for source in self.sources]
        known = [hint for hint in hints if hint is not None]
        return sum(known) if len(known) == len(hints) else None


@dataclass(frozen=True, slots=True)
class Drawn:
    """The documents of one source that its language's budget takes."""

    budget: LanguageBudget
    place: int  # of the source among those of the language

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.budget.n_bytes:,} bytes drawn at random"

    @property
    def facts(self) -> list[Any]:
        """For `input_key`, which knows the other sources too."""
        return ["budget", self.budget.n_bytes, self.budget.seed, self.place]

    def n_bytes_hint(self, n_bytes: int) -> int:
        """The source's share of the budget."""
        total = self.budget.known_bytes
        return n_bytes if not total else round(n_bytes * min(1.0, self.budget.n_bytes / total))

    def of(self, blocks: Iterator[Documents]) -> Iterator[Documents]:
        """Documents with low numbers."""
        limit = self.budget.limit
        numbers = _Numbers(self.budget, self.place)
        for documents in blocks:
            is_taken = numbers.next(len(documents)) < limit
            if is_taken.any():
                yield documents.where(is_taken)


@dataclass
class _Numbers:
    """Numbers of a source's documents, one behind the other, however blocks are cut."""

    budget: LanguageBudget
    place: int
    _bits: np.random.PCG64 = field(init=False)

    def __post_init__(self) -> None:
        facts = json.dumps([self.budget.seed, self.budget.language, self.place])
        self._bits = np.random.PCG64(int.from_bytes(hashlib.sha256(facts.encode()).digest()))

    def next(self, n: int) -> NDArray[np.int64]:
        """(n,) of them, from 0 to 2 ** 20 - 1."""
        return (self._bits.random_raw(n) >> np.uint64(64 - _BITS)).astype(np.int64)
