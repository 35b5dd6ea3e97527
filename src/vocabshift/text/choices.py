"""Choices: which documents of a source a corpus takes.

Owns the face that all choices have, so that `corpus` can put one behind another without knowing
what they choose by: `held_out`, `roman_words` and `language_budget` do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from vocabshift.text.documents import Documents


class Choice(Protocol):
    """Takes some of a source's documents, in their order, and the same ones every time."""

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
