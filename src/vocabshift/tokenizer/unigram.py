"""A Unigram tokenizer.json made of pieces with scores.

Bytes for characters without a piece, "▁" for the space, one in front of every text (SentencePiece's
dummy prefix, which decoding takes away again): text comes back byte for byte, but for "▁" itself,
which comes back as a space. Knows nothing of how pieces are learned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vocabshift.text.normalize import normalizer_spec
from vocabshift.tokenizer.components import SPACE
from vocabshift.tokenizer.reachability import BYTE_PIECE
from vocabshift.tokenizer.token_bytes import text_pieces
from vocabshift.tokenizer.unigram_or_wordpiece import PlainTokenizer, from_json

UNKNOWN = "<unk>"
FIXED_PIECES = 257  # that every model has: the bytes and the unknown piece


@dataclass(frozen=True, slots=True)
class Scored:
    """Pieces of a Unigram model, by id; bytes and the unknown piece included."""

    pieces: tuple[str, ...]
    scores: tuple[float, ...]  # natural logarithms of probabilities

    @property
    def learned(self) -> dict[str, float]:
        """Scores of the pieces that stand for text: neither a byte nor the unknown piece."""
        pairs = zip(self.pieces, self.scores, strict=True)
        return {piece: score for piece, score in pairs if not is_fixed(piece)}


def is_fixed(piece: str) -> bool:
    """Whether a piece is one that every model has: a byte, or the unknown piece."""
    return piece == UNKNOWN or bool(re.fullmatch(r"<0x[0-9A-F]{2}>", piece))


def unigram_tokenizer(scored: Scored, *, normalizer: str | None, name: str) -> PlainTokenizer:
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
    return from_json(
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


# The tokens of Unigram and WordPiece tokenizers: their bytes in text, and which can be produced.
#
# What `token_bytes` and `reachability` are for BPE.


def unreachable_pieces(tokenizer: PlainTokenizer) -> tuple[str, ...]:
    """Tokens that their own text does not give: others stand for it at less cost.

    The model alone is asked, without normalizer and pre-tokenizer. Byte pieces, added tokens and
    the unknown token are not counted.
    """
    model = tokenizer.backend.model
    outside = {token.content for token in tokenizer.added_tokens} | {tokenizer.unk_token}
    return tuple(
        token
        for token, token_id in tokenizer.vocab.items()
        if token not in outside
        and not BYTE_PIECE.fullmatch(token)
        and not token.startswith(tokenizer.prefix or "\0")
        and [piece.id for piece in model.tokenize(token)] != [token_id]
    )


def plain_token_bytes(tokenizer: PlainTokenizer) -> dict[int, bytes]:
    """What each token that is not special stands for in text, by id (see `token_bytes`).

    "▁" is a space, "##ing" is "ing", a byte piece its byte; the unknown token is none of these.
    """
    outside = {token.id for token in tokenizer.added_tokens}
    hidden = outside | {tokenizer.vocab.get(tokenizer.unk_token or "", -1)}
    spell = text_pieces(tokenizer.document)
    table = {}
    for token, token_id in tokenizer.vocab.items():
        if token_id not in hidden:
            within = bool(tokenizer.prefix) and token.startswith(tokenizer.prefix)
            table[token_id] = spell(token.removeprefix(tokenizer.prefix) if within else token)
    for added in tokenizer.added_tokens:
        if not added.special:
            table[added.id] = added.content.encode()
    return table
