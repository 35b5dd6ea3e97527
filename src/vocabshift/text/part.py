"""One source of a corpus, its language and weight, and which of its documents are taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from vocabshift.text.choices import Choice
from vocabshift.text.documents import Documents
from vocabshift.text.readers import Source


@dataclass(frozen=True, slots=True)
class Part:
    """One source of a corpus."""

    source: Source
    language: str | None = None
    weight: float = 1.0
    choices: tuple[Choice, ...] = ()  # each of what the one before it took

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

    def read(self) -> Iterator[Documents]:
        """Its documents, from the start, with language and weight."""
        blocks = self.source.read()
        for choice in self.choices:
            blocks = choice.of(blocks)
        for documents in blocks:
            yield replace(documents, language=self.language, weight=self.weight)

    def choosing(self, choice: Choice) -> Part:
        """What this choice takes of it."""
        return replace(self, choices=(*self.choices, choice))
