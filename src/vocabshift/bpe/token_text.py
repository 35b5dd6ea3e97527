"""What a token of the vocabulary stands for: its bytes, and its text where they are whole."""

from __future__ import annotations

import re

from vocabshift.bpe import byte_level
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.text.patterns import from_spec

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
_METASPACE = "▁"


def is_byte_level(tokenizer: Tokenizer) -> bool:
    """Whether the model sees the byte-level image of text, not the text itself."""
    return from_spec(tokenizer.pre_tokenizer) is not None or tokenizer.model.is_byte_level


def token_bytes(tokenizer: Tokenizer, token: str) -> bytes:
    """Bytes that a token of the model stands for; a metaspace is a space."""
    if is_byte_level(tokenizer):
        try:
            return byte_level.to_bytes(token)
        except KeyError:  # a special token kept in the vocabulary, spelt as itself
            return token.encode()
    if match := _BYTE_PIECE.fullmatch(token):
        return bytes([int(match[1], 16)])
    return token.replace(_METASPACE, " ").encode()


def token_text(tokenizer: Tokenizer, token: str) -> str | None:
    """Text of a token, or None where its bytes are not whole UTF-8."""
    try:
        return token_bytes(tokenizer, token).decode()
    except UnicodeDecodeError:
        return None
