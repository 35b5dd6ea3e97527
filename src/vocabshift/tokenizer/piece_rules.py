"""The rules for strings that may be pieces of a SentencePiece vocabulary.

Owns the rules of one model (fields of its TrainerSpec) and the characters with a role of their own.
How the rules are applied is the core's (`PieceRule`). Sources: sentencepiece_model.proto and
trainer_interface.cc of sentencepiece; docs/algorithms/continued.md.
"""

from __future__ import annotations

from dataclasses import dataclass

NEVER_IN_PIECES = "\x00\t\n \u2585"
"""No new piece holds one of these. SentencePiece keeps NUL and the tab (its boundary mark) out,
spells the space "▁", uses U+2585 for unknown text while it trains, and reads its text by lines."""

DECIMAL_DIGITS = "".join(
    character for character in map(chr, range(0x20000)) if character.isdecimal()
)
"""Digits of every script, single pieces under `split_digits`. Subtle: sentencepiece itself
knows only ASCII and full-width digits (Gemma 4 has Bengali years as pieces); the toolkit of
"Teaching Old Tokenizers New Words" splits all that Python calls digits."""


@dataclass(frozen=True, slots=True)
class SentencePieceRules:
    """Rules of one model; by default those of Llama 2 and Mistral, which the paper's toolkit
    takes for every model.

    ValueError for a length below 1.
    """

    max_length: int = 16  # of a piece, in characters
    split_by_script: bool = True  # no piece of two scripts; kana go with Han
    split_by_number: bool = True  # otherwise digits go with every script
    split_digits: bool = True  # each decimal digit is a piece by itself
    split_by_whitespace: bool = True  # otherwise "▁" may stand inside a piece
    whitespace_as_suffix: bool = False  # "▁" ends a piece instead of beginning it
    whitespace_only: bool = True  # pieces of nothing but "▁"

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise ValueError(f"max_length is {self.max_length}; a piece has at least 1 character")
