"""The characters that a tokenizer loses, found by trying each one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import tokenizers


def assigned() -> list[int]:
    """Every code point that is neither unassigned nor half of a surrogate pair."""
    return [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


def lost(backend: tokenizers.Tokenizer, code_points: Iterable[int]) -> set[int]:
    """Those that do not come back between two letters."""
    found = set()
    for code_point in code_points:
        text = f"a{chr(code_point)}b"
        ids = backend.encode(text, add_special_tokens=False).ids
        if backend.decode(ids, skip_special_tokens=False) != text:
            found.add(code_point)
    return found
