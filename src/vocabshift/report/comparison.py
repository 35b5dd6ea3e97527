"""What a comparison of two tokenizers is drawn from. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vocabshift.report.pieces import TokenizedLine


@dataclass(frozen=True, slots=True)
class LanguageTotals:
    """All lines of one language."""

    language: str
    n_lines: int
    n_bytes: int  # of UTF-8
    tokens_a: int
    tokens_b: int
    lost_a: int = 0  # lines that do not come back from their tokens
    lost_b: int = 0

    @property
    def change(self) -> float:
        """Tokens of b over those of a, less one: -0.25 is a quarter fewer."""
        return self.tokens_b / max(self.tokens_a, 1) - 1


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch of text that the two cut into different numbers of tokens, over all its places."""

    text: str
    count: int  # places
    tokens_a: int  # in all places together
    tokens_b: int

    @property
    def change(self) -> int:
        """Tokens that b has more."""
        return self.tokens_b - self.tokens_a


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One line as both cut it."""

    language: str
    number: int  # among the language's lines that are not blank, from 1
    a: TokenizedLine
    b: TokenizedLine

    @property
    def change(self) -> int:
        """Tokens that b has more."""
        return len(self.b.pieces) - len(self.a.pieces)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two tokenizers on the same text."""

    a: str  # names
    b: str
    languages: tuple[LanguageTotals, ...]
    shorter: tuple[Change, ...]  # the largest change first
    longer: tuple[Change, ...]
    lines: tuple[ComparedLine, ...]  # by language, the largest change first
    names: Mapping[str, str] = field(default_factory=dict)  # of languages for people, by label


def total(rows: Sequence[LanguageTotals]) -> LanguageTotals:
    """All languages together."""
    return LanguageTotals(
        "all",
        sum(row.n_lines for row in rows),
        sum(row.n_bytes for row in rows),
        sum(row.tokens_a for row in rows),
        sum(row.tokens_b for row in rows),
        sum(row.lost_a for row in rows),
        sum(row.lost_b for row in rows),
    )
