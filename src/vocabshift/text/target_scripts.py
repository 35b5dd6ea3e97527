"""The scripts whose words Matra counts more, as data that a linguist may change.

Source: "Matra: Sentence-Constrained Superword Tokenization for India's Scheduled Languages",
Table 1: fifteen Unicode blocks. The table's Syriac and Sinhala are kept as they stand there.
"""

from __future__ import annotations

from collections.abc import Mapping

Range = tuple[str, str]
"""First and last character of a block, both included."""

MATRA_SCRIPTS: Mapping[str, Range] = {
    "Devanagari": ("\u0900", "\u097f"),
    "Bengali": ("\u0980", "\u09ff"),
    "Gurmukhi": ("\u0a00", "\u0a7f"),
    "Gujarati": ("\u0a80", "\u0aff"),
    "Oriya": ("\u0b00", "\u0b7f"),
    "Tamil": ("\u0b80", "\u0bff"),
    "Telugu": ("\u0c00", "\u0c7f"),
    "Kannada": ("\u0c80", "\u0cff"),
    "Malayalam": ("\u0d00", "\u0d7f"),
    "Sinhala": ("\u0d80", "\u0dff"),
    "Meetei Mayek": ("\uaae0", "\uaaff"),
    "Ol Chiki": ("\u1c50", "\u1c7f"),
    "Arabic": ("\u0600", "\u06ff"),
    "Perso-Arabic": ("\ufb50", "\ufdff"),
    "Syriac": ("\u0700", "\u074f"),
}
"""Subtle: the letters of Meetei Mayek stand at U+ABC0-ABFF; the paper's range U+AAE0-AAFF is its
extension block alone."""

MEETEI_MAYEK_LETTERS: Range = ("\uabc0", "\uabff")
"""What Table 1 leaves out of Meetei Mayek: all of its everyday letters."""
