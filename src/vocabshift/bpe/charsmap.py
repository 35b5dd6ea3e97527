"""SentencePiece's precompiled character map: is it safe to hand to `tokenizers`?

Owns the layout (a double-array trie, then the replacement texts, each ended by a zero byte) and
the bounds that `tokenizers` does not check: a damaged map makes it panic while it encodes.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

from vocabshift.errors import InvalidTokenizerError

_LEAF = 1 << 31  # this unit is a value: an offset into the replacement texts
_HAS_LEAF = 1 << 8  # the unit at this unit's offset is a value
_BLOCK = 0xFF  # the next byte of the text is xor-ed into the lowest eight bits of a position


def check_charsmap(data: bytes) -> None:
    """InvalidTokenizerError where a step through the map could leave it; empty is identity."""
    if not data:
        return
    if not _is_sound(data):
        raise InvalidTokenizerError(
            "the precompiled character map of the normalizer is damaged; restore the file"
        )


def check_normalizer(spec: Mapping[str, Any] | None) -> None:
    """Check every map that a normalizer holds, as `tokenizer.json` spells it."""
    steps = (spec or {}).get("normalizers")
    nested = (
        [step for step in steps if isinstance(step, Mapping)] if isinstance(steps, list) else []
    )
    for step in [spec or {}, *nested]:
        if step.get("type") == "Precompiled":
            try:
                charsmap = base64.b64decode(step["precompiled_charsmap"], validate=True)
            except (KeyError, TypeError, ValueError):
                raise InvalidTokenizerError("the precompiled_charsmap is not base64") from None
            check_charsmap(charsmap)


def _is_sound(data: bytes) -> bool:
    if len(data) < 8:
        return False
    (trie_size,) = struct.unpack_from("<I", data)
    if trie_size % 4 or not 4 <= trie_size <= len(data) - 4:
        return False
    units = struct.unpack_from(f"<{trie_size // 4}I", data, 4)
    texts = data[4 + trie_size :]
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError:
        return False
    for position, unit in enumerate(units):
        if unit & _LEAF:
            continue
        base = position ^ ((unit >> 10) << ((unit & (1 << 9)) >> 6))
        if base | _BLOCK >= len(units):
            return False
        if unit & _HAS_LEAF:
            start = units[base] & ~_LEAF
            # Inside the texts, and not inside a character.
            if start >= len(texts) or texts[start] & 0xC0 == 0x80:
                return False
    return True
