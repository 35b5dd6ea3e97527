"""STT: can the merges of a tokenizer rebuild each of its tokens?

The self-tokenization test of "Teaching Old Tokenizers New Words", section 3: merges alone, without
merge skipping, run on the token's own bytes or characters. Byte pieces and added tokens are not
counted: nothing has to rebuild them. Whether the *pipeline* lets a token through is another
question (see `pipeline_reachability`).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from vocabshift.tokenizer.byte_level import ALPHABET
from vocabshift.tokenizer.model import compile_model, image_bytes
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer

NOT_MADE = -2
"""What the core says of a token that merges do not rebuild."""

BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")


def byte_pieces(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Tokens that stand for one byte: images, or "<0xNN>"."""
    vocab = tokenizer.model.vocab
    if is_byte_level(tokenizer):
        return tuple(token for token in vocab if len(token) == 1 and len(image_bytes(token)) == 1)
    return tuple(token for token in vocab if BYTE_PIECE.fullmatch(token))


def missing_byte_pieces(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Pieces of single bytes that a model needs to express any text, and lacks.

    Without them bytes are dropped, or become the unknown token, and do not come back. Empty for a
    model that falls back on no bytes: its unknown token is meant.
    """
    model = tokenizer.model
    if is_byte_level(tokenizer):
        return tuple(image for image in ALPHABET if image not in model.vocab)
    if not model.byte_fallback:
        return ()
    pieces = (f"<0x{byte:02X}>" for byte in range(256))
    return tuple(piece for piece in pieces if piece not in model.vocab)


def unreachable_tokens(tokenizer: Any) -> tuple[str, ...]:
    """Tokens of the model that its merges do not rebuild, by id; added tokens are left out."""
    from vocabshift.tokenizer.formats.load import as_tokenizer

    value = as_tokenizer(tokenizer)
    left_out = {token.content for token in value.added_tokens} | set(byte_pieces(value))
    if value.model.unk_token is not None:
        left_out.add(value.model.unk_token)
    encoder = compile_model(value.model, byte_level=is_byte_level(value))
    not_made = np.flatnonzero(encoder.last_merges() == NOT_MADE).tolist()
    tokens = list(value.model.vocab.items())  # in the encoder's order
    found = sorted((token_id, token) for token, token_id in map(tokens.__getitem__, not_made))
    return tuple(token for _, token in found if token not in left_out)
