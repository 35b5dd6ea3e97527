"""What a view of tokens is drawn from: a line, and the pieces that a tokenizer cuts it into.

Values only. Knows nothing of tokenizers, colours or HTML.
"""

from __future__ import annotations

from dataclasses import dataclass


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
