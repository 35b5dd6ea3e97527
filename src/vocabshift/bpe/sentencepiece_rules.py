"""SentencePieceRules: what a SentencePiece model was trained to accept as a piece.

Owns the fields of the TrainerSpec that rule merges, and their defaults. How they are applied is the
core's (`PieceRule`). Source: sentencepiece_model.proto; adapting.md section 1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vocabshift.bpe import protobuf


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


def from_trainer_spec(fields: Mapping[int, protobuf.Value]) -> SentencePieceRules:
    """The rules in a TrainerSpec; fields that are not there have the defaults of the format.

    WireError for fields that are no numbers, or numbers that no trainer accepts.
    """
    try:
        return SentencePieceRules(
            max_length=protobuf.int32(fields.get(20, 16)),
            split_by_script=_flag(fields, 21, True),
            split_by_whitespace=_flag(fields, 22, True),
            split_by_number=_flag(fields, 23, True),
            whitespace_as_suffix=_flag(fields, 24, False),
            split_digits=_flag(fields, 25, False),
            whitespace_only=_flag(fields, 26, False),
        )
    except ValueError as error:
        raise protobuf.WireError(str(error)) from None


def _flag(fields: Mapping[int, protobuf.Value], number: int, default: bool) -> bool:
    return bool(protobuf.int32(fields.get(number, default)))
