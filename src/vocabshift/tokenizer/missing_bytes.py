"""Bytes that a vocabulary lacks: which text that loses, and how they are added.

Not every missing byte loses text. Thirteen bytes occur in no UTF-8, and two begin only characters
of planes in which Unicode assigns none. The others lose the assigned characters that are spelt with
them. Owns this distinction, for the vocabulary alone: what a normalizer changes is not counted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from itertools import count as count_from

import numpy as np
from numpy.typing import NDArray

from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.components import SPACE
from vocabshift.tokenizer.token_bytes import BYTE_PIECE, is_byte_level, is_metaspace
from vocabshift.tokenizer.tokenizer import Tokenizer

NEVER_IN_UTF8 = frozenset((0xC0, 0xC1, *range(0xF5, 0x100)))
"""Bytes that occur in no UTF-8 text (RFC 3629, section 1)."""

UNASSIGNED = frozenset((0xF1, 0xF2))
"""Bytes that begin only U+40000 to U+BFFFF, planes 4 to 11, in which Unicode 17 assigns nothing."""

SHOWN = 8
"""Characters that are named where many are lost."""

CodePoints = NDArray[np.uint32]


@dataclass(frozen=True)
class LostCharacters:
    """The assigned characters that a tokenizer loses before and after a change."""

    before: int
    after: int
    names: tuple[str, ...]  # "U+0004", of those lost afterwards; the first few
    bytes_added: tuple[str, ...]  # "04", what the change added to the vocabulary

    @classmethod
    def between(cls, old: AnyTokenizer, new: AnyTokenizer) -> LostCharacters:
        """Compare two tokenizers."""
        after = lost_characters(new)
        added = sorted(set(missing_bytes(old)) - set(missing_bytes(new)))
        return cls(len(lost_characters(old)), len(after), names_of(after[:SHOWN]), hex_of(added))


def missing_bytes(tokenizer: AnyTokenizer) -> tuple[int, ...]:
    """The bytes, ascending, for which a vocabulary that is spelt in bytes has no token.

    Empty for a model that falls back on no bytes.
    """
    pieces = tokenizer.missing_byte_pieces()
    return tuple(sorted(map(_byte_of, pieces)))


def lost_characters(tokenizer: AnyTokenizer) -> CodePoints:
    """The assigned code points, ascending, that the vocabulary has no tokens for.

    Private-use characters count as assigned. Characters that an unknown token stands for in a model
    without bytes do not count: that model is meant to lose them.
    """
    lacks = np.zeros(256, dtype=bool)
    lacks[list(missing_bytes(tokenizer))] = True
    if _has_nothing_else(tokenizer):
        lacks[:] = True
    lacks[[*NEVER_IN_UTF8, *UNASSIGNED]] = False
    if not lacks.any():
        return np.zeros(0, dtype=np.uint32)
    assigned = _assigned()
    lost = assigned[_spelt_with(assigned, lacks)]
    alone = np.array(sorted(_single_characters(tokenizer)), dtype=np.uint32)
    return np.setdiff1d(lost, alone, assume_unique=True)  # else it sorts hundreds of thousands


def losing_bytes(tokenizer: AnyTokenizer) -> tuple[int, ...]:
    """The missing bytes that some lost character is spelt with."""
    lost = lost_characters(tokenizer)
    alone = np.zeros((256, 256), dtype=bool)
    np.fill_diagonal(alone, val=True)
    return tuple(byte for byte in missing_bytes(tokenizer) if _spelt_with(lost, alone[byte]).any())


def with_missing_bytes(tokenizer: Tokenizer, free_ids: Iterable[int] = ()) -> Tokenizer:
    """The tokenizer with a token for every missing byte that UTF-8 can hold; itself if none is.

    Existing ids stay; new tokens take `free_ids`, then ids after all others. Bytes that occur in no
    UTF-8 are not added: no text would ever reach their tokens. ValueError for a model that falls
    back on no bytes, and where an added token is spelt like the token of a byte.
    """
    model = tokenizer.model
    if not is_byte_level(tokenizer) and not model.byte_fallback:
        raise ValueError(
            f"{tokenizer.name} spells no text in bytes, so tokens for bytes would never be used; "
            "leave complete_bytes out"
        )
    pieces = {_byte_of(piece): piece for piece in tokenizer.missing_byte_pieces()}
    new = [piece for byte, piece in sorted(pieces.items()) if byte not in NEVER_IN_UTF8]
    if taken := {token.content for token in tokenizer.added_tokens}.intersection(new):
        raise ValueError(
            f"the added token {min(taken)!r} of {tokenizer.name} is how its vocabulary spells a "
            "missing byte; rename that token first"
        )
    if not new:
        return tokenizer
    ids = chain(free_ids, count_from(tokenizer.row_count))
    vocab = {**model.vocab, **dict(zip(new, ids, strict=False))}
    return replace(tokenizer, model=model.unchecked(vocab=vocab))


def names_of(code_points: Iterable[int]) -> tuple[str, ...]:
    """Code points as Unicode writes them: "U+0004"."""
    return tuple(f"U+{int(code_point):04X}" for code_point in code_points)


def hex_of(data: Iterable[int]) -> tuple[str, ...]:
    """Bytes as two hexadecimal digits."""
    return tuple(f"{byte:02X}" for byte in data)


def _byte_of(piece: str) -> int:
    if BYTE_PIECE.fullmatch(piece):
        return int(piece[3:5], 16)
    return byte_level.IMAGE_BYTES[piece]


def _has_nothing_else(tokenizer: AnyTokenizer) -> bool:
    """Whether only the vocabulary's own characters can be expressed, and the rest is dropped."""
    if not isinstance(tokenizer, Tokenizer) or tokenizer.unk_token is not None:
        return False
    return not (tokenizer.model.byte_fallback or is_byte_level(tokenizer))


def _single_characters(tokenizer: AnyTokenizer) -> set[int]:
    """Code points that are tokens by themselves; byte images are not such tokens."""
    texts = {token.content for token in tokenizer.added_tokens}
    if not (isinstance(tokenizer, Tokenizer) and is_byte_level(tokenizer)):
        texts |= tokenizer.vocab.keys()
    if SPACE in texts and isinstance(tokenizer, Tokenizer) and is_metaspace(tokenizer):
        texts.add(" ")
    return {ord(text) for text in texts if len(text) == 1}


def _spelt_with(code_points: CodePoints, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the UTF-8 of each code point has one of the `chosen` bytes (256,)."""
    c = code_points
    last, third, second = 0x80 | c & 63, 0x80 | c >> 6 & 63, 0x80 | c >> 12 & 63
    lead = np.select(
        [c < 0x80, c < 0x800, c < 0x10000], [c, 0xC0 | c >> 6, 0xE0 | c >> 12], 0xF0 | c >> 18
    )
    return np.asarray(
        chosen[lead]
        | (chosen[last] & (c >= 0x80))
        | (chosen[third] & (c >= 0x800))
        | (chosen[second] & (c >= 0x10000))
    )


@cache
def _assigned() -> CodePoints:
    """Every code point that a Unicode version assigns: neither unassigned nor a surrogate."""
    category = unicodedata.category
    found = [c for c in range(0x110000) if category(chr(c)) not in ("Cn", "Cs")]
    return np.array(found, dtype=np.uint32)
