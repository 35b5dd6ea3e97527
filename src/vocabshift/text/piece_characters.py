"""Characters with a role of their own in SentencePiece pieces, as data.

Sources: trainer_interface.cc of sentencepiece; adapting.md section 1.3.
"""

from __future__ import annotations

NEVER_IN_PIECES = "\x00\t\n \u2585"
"""No new piece holds one of these. SentencePiece keeps NUL and the tab (its boundary mark) out,
spells the space "▁", uses U+2585 for unknown text while it trains, and reads its text by lines."""

DECIMAL_DIGITS = "".join(
    character for character in map(chr, range(0x20000)) if character.isdecimal()
)
"""Digits of every script, which stand alone under `split_digits`. Subtle: sentencepiece itself
knows only ASCII and full-width digits (Gemma 4 has Bengali years as pieces); the paper's toolkit
splits all that Python calls digits."""
