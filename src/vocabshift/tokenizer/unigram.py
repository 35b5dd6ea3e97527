"""A Unigram tokenizer.json made of pieces with scores.

Characters without a piece become bytes, a space becomes "▁", and one "▁" precedes every text
(SentencePiece's dummy prefix, which decoding removes). Text round-trips byte for byte, except "▁"
itself, which decodes to a space. Knows nothing of how pieces are learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vocabshift.text.normalize import normalizer_spec
from vocabshift.tokenizer.components import SPACE
from vocabshift.tokenizer.token_bytes import BYTE_PIECE
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

UNKNOWN = "<unk>"
FIXED_PIECES = 257  # that every model has: the bytes and the unknown piece


@dataclass(frozen=True, slots=True)
class Scored:
    """Pieces of a Unigram model, by id; bytes and the unknown piece included."""

    pieces: tuple[str, ...]
    scores: tuple[float, ...]  # natural logarithms of probabilities

    @property
    def learned(self) -> dict[str, float]:
        """Scores of the pieces for text: neither bytes nor the unknown piece."""
        pairs = zip(self.pieces, self.scores, strict=True)
        return {piece: score for piece, score in pairs if not is_fixed(piece)}


def is_fixed(piece: str) -> bool:
    """Whether a piece is one that every model has: a byte, or the unknown piece."""
    return piece == UNKNOWN or BYTE_PIECE.fullmatch(piece) is not None


def unigram_tokenizer(
    scored: Scored, *, normalizer: str | None, name: str
) -> UnigramOrWordPieceTokenizer:
    """The tokenizer of these pieces.

    Text is cut before each "▁", which changes nothing (no piece holds one but in front) and lets
    `tokenizers` remember words.
    """
    spaces: list[Mapping[str, Any]] = [
        {"type": "Prepend", "prepend": SPACE},
        {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
    ]
    first = normalizer_spec(normalizer)
    steps = spaces if first is None else [first, *spaces]
    return UnigramOrWordPieceTokenizer.from_json(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": steps},
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": SPACE},
                "behavior": "MergedWithNext",
                "invert": False,
            },
            "post_processor": None,
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                ],
            },
            "model": {
                "type": "Unigram",
                "unk_id": scored.pieces.index(UNKNOWN),
                "vocab": [[*pair] for pair in zip(scored.pieces, scored.scores, strict=True)],
                "byte_fallback": True,
            },
        },
        name=name,
    )
