"""Lines with many words in Roman script, left out of text in another script.

Such lines of web text are mostly code-mixed, navigation or another language; the Indic study leaves
out those with more than ten (section 4.1). Owns what a Roman word is, and which languages are
concerned. A document of several lines loses the lines, not its whole text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from vocabshift.text.documents import Documents, pack
from vocabshift.text.languages import find_language

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
    """Lines of at most so many Roman words."""

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
    """All documents; `pack` leaves out those of which nothing stayed."""
    places = zip(documents.starts.tolist(), documents.ends.tolist(), strict=True)
    for i, (start, end) in enumerate(places):
        yield changed[i] if i in changed else bytes(documents.data[start:end])


def _n_latin_bytes(documents: Documents) -> NDArray[np.int64]:
    """(n,) bytes of each document that may begin a Latin letter: no fewer than its Roman words."""
    is_found = _MAY_BEGIN_LATIN[np.frombuffer(documents.data, dtype=np.uint8)]
    places = np.flatnonzero(is_found)
    counts: NDArray[np.int64] = np.searchsorted(places, documents.ends)
    return counts - np.searchsorted(places, documents.starts)
