"""Parts of a corpus and choices: which documents of a source belong to a corpus.

Owns the interface of all choices, which lets a part chain them, and two choices: a byte budget for
each language, and a limit on words in Roman script. `held_out` has the third.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import regex
from numpy.typing import NDArray

from vocabshift.errors import CorpusError
from vocabshift.text.documents import Documents, pack
from vocabshift.text.languages import find_language

if TYPE_CHECKING:
    from vocabshift.text.readers import Source


class Choice(Protocol):
    """Selects documents of a source, in order, and the same ones in every pass."""

    @property
    def name(self) -> str:
        """For messages: "every 20th document"."""

    @property
    def facts(self) -> list[Any]:
        """Plain JSON values that change with what is chosen: see `input_key`."""

    def n_bytes_hint(self, n_bytes: int) -> int:
        """About how much is left of `n_bytes` of text."""

    def of(self, blocks: Iterator[Documents]) -> Iterator[Documents]:
        """The documents chosen; blocks without any are left out."""


@dataclass(frozen=True, slots=True)
class Part:
    """One source of a corpus."""

    source: Source
    language: str | None = None
    weight: float = 1.0
    choices: tuple[Choice, ...] = ()  # each applied to the result of the previous one

    @property
    def name(self) -> str:
        """For messages."""
        chosen = ", ".join(choice.name for choice in self.choices)
        return f"{self.source.name} ({chosen})" if chosen else self.source.name

    @property
    def n_bytes_hint(self) -> int | None:
        """About how many bytes of text, where that is known without reading."""
        n_bytes = self.source.n_bytes_hint
        for choice in self.choices:
            n_bytes = None if n_bytes is None else choice.n_bytes_hint(n_bytes)
        return n_bytes

    def read(self, threads: int = 1) -> Iterator[Documents]:
        """Its documents, from the start, with language and weight."""
        blocks = self.source.read(threads)
        for choice in self.choices:
            blocks = choice.of(blocks)
        for documents in blocks:
            yield replace(documents, language=self.language, weight=self.weight)

    def choosing(self, choice: Choice) -> Part:
        """This part with one more choice."""
        return replace(self, choices=(*self.choices, choice))


# A byte budget for each language, drawn at random but reproducibly.
#
# Files are often sorted by source, so their first megabytes are not a sample. Every document gets a
# number from the seed, its language and its position. Those with the lowest numbers are taken, as
# many as fit, in their order. The first pass only sums bytes by the leading bits of the number, in
# constant memory.

_BITS = 20
"""A language is taken to within a millionth of its bytes."""


@dataclass(eq=False)
class LanguageBudget:
    """The budget of one language: at most `n_bytes` of all its sources together."""

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
class BudgetSample:
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
    """Numbers of a source's documents, in their order, however blocks are cut."""

    budget: LanguageBudget
    place: int
    _bits: np.random.PCG64 = field(init=False)

    def __post_init__(self) -> None:
        facts = json.dumps([self.budget.seed, self.budget.language, self.place])
        self._bits = np.random.PCG64(int.from_bytes(hashlib.sha256(facts.encode()).digest()))

    def next(self, n: int) -> NDArray[np.int64]:
        """(n,) of them, from 0 to 2 ** 20 - 1."""
        return (self._bits.random_raw(n) >> np.uint64(64 - _BITS)).astype(np.int64)


# Lines with many words in Roman script, left out of text in another script.
#
# Such lines of web text are mostly code-mixed, navigation or another language; the Indic study
# leaves out those with more than ten (section 4.1). A document of several lines loses the lines,
# not its whole text.

_WORD = regex.compile(r"(?V1)(?<!\S)[[\S--\p{L}]]*+\p{Latin}[[\S--\p{L}]\p{Latin}]*+(?!\S)")

_MAY_BEGIN_LATIN = np.zeros(256, dtype=np.bool_)
"""First bytes that Latin letters have in UTF-8: most lines are cleared by them alone."""
_MAY_BEGIN_LATIN[[*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"]] = True
_MAY_BEGIN_LATIN[[*range(0xC2, 0xCC), 0xE1, 0xE2, 0xEA, 0xEF, 0xF0]] = True


def count_roman_words(line: str) -> int:
    """Words, divided by white space, with a Latin letter and no letter of another script."""
    return len(_WORD.findall(line))


def is_written_in_roman(label: str | None) -> bool | None:
    """Whether the language of a label is written in Latin script; None where it is not known."""
    language = find_language(label)
    return None if language is None else "Latin" in language.scripts


@dataclass(frozen=True, slots=True)
class RomanWordLimit:
    """Keeps only lines with a limited number of Roman words."""

    most: int

    @property
    def name(self) -> str:
        """For messages."""
        return f"lines of at most {self.most} Roman words"

    @property
    def facts(self) -> list[Any]:
        """For `input_key`."""
        return ["roman words", self.most]

    def n_bytes_hint(self, n_bytes: int) -> int:
        """All: such lines are few."""
        return n_bytes

    def of(self, blocks: Iterator[Documents]) -> Iterator[Documents]:
        """The documents without their lines that have more."""
        for documents in blocks:
            suspects = np.flatnonzero(_n_latin_bytes(documents) > self.most).tolist()
            changed = {}
            for i in suspects:
                data = bytes(documents.data[documents.starts[i] : documents.ends[i]])
                kept = self._lines_of(data)
                if kept != data:
                    changed[i] = kept
            if not any(changed.values()):  # the common case: nothing need be copied
                is_whole = np.ones(len(documents), dtype=np.bool_)
                is_whole[list(changed)] = False
                if is_whole.any():
                    yield documents.where(is_whole)
            else:
                yield from pack(_replaced(documents, changed), documents.source)

    def _lines_of(self, data: bytes) -> bytes:
        lines = str(data, "utf-8").split("\n")
        return "\n".join(line for line in lines if count_roman_words(line) <= self.most).encode()


def _replaced(documents: Documents, changed: dict[int, bytes]) -> Iterator[bytes]:
    """All documents; `pack` drops those that became empty."""
    places = zip(documents.starts.tolist(), documents.ends.tolist(), strict=True)
    for i, (start, end) in enumerate(places):
        yield changed[i] if i in changed else bytes(documents.data[start:end])


def _n_latin_bytes(documents: Documents) -> NDArray[np.int64]:
    """(n,) bytes of each document that may begin a Latin letter: no fewer than its Roman words."""
    is_found = _MAY_BEGIN_LATIN[np.frombuffer(documents.data, dtype=np.uint8)]
    places = np.flatnonzero(is_found)
    counts: NDArray[np.int64] = np.searchsorted(places, documents.ends)
    return counts - np.searchsorted(places, documents.starts)
