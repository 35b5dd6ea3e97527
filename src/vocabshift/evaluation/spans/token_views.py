"""What a view of tokens is drawn from: a line, and the pieces that a tokenizer cuts it into.

Values only. Knows nothing of tokenizers, colours or HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Piece:
    """One token in a line."""

    id: int
    token: str  # as the vocabulary spells it
    start: int  # bytes into the line's UTF-8
    end: int  # exclusive; equal to `start` for a token that stands for nothing in the line
    superword: bool = False  # has text on both sides of a space
    cuts_character: bool = False  # begins or ends inside a character
    cuts_syllable: bool = False  # begins or ends between characters of one orthographic syllable
    special: bool = False
    unknown: bool = False  # the token that stands for text without a token


@dataclass(frozen=True, slots=True)
class TokenizedLine:
    """A line and its pieces, in order; spans ascend and never overlap."""

    text: str
    pieces: tuple[Piece, ...]
    exact: bool = True  # whether the pieces cover the line byte for byte
    # Bytes, ascending, at which a picture may divide the line without tearing what is drawn as one
    # sign; None: in front of every character.
    borders: tuple[int, ...] | None = None

    @property
    def n_bytes(self) -> int:
        """Of the line's UTF-8."""
        return len(self.text.encode())


# What a report shows beside figures: real lines as tokenizers cut them, and vocabularies.
#
# Values only. Knows nothing of tokenizers, HTML or terminals.


@dataclass(frozen=True, slots=True)
class LanguageView:
    """Some lines of one language, as each tokenizer cuts them."""

    label: str  # of the corpus, as in Results ("ks_Arab")
    name: str  # for people ("Kashmiri"); the label itself where nothing better is known
    lines: Mapping[str, tuple[TokenizedLine, ...]]  # by subject


@dataclass(frozen=True, slots=True)
class VocabularyPart:
    """The tokens of a vocabulary that belong to one script or class."""

    name: str  # "Devanagari", "digits"
    tokens: int
    superwords: int = 0


@dataclass(frozen=True, slots=True)
class TokenViews:
    """All that a report shows of tokens."""

    languages: tuple[LanguageView, ...] = ()
    vocabularies: Mapping[str, tuple[VocabularyPart, ...]] = field(default_factory=dict)
    text: str = ""  # what the text is, for people
    notes: tuple[str, ...] = ()  # what a reader must know, one sentence each


# What a comparison of two tokenizers is drawn from. Values only.


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
