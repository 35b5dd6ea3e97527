"""Orthographic syllables of the scripts of India, and graphemes: what belongs together in writing.

A syllable is a letter with its marks (vowel signs, nukta, anusvara, virama), joiners, and the
letters that a virama joins to it (conjuncts). Owns which scripts are written so, what joins, and
the regex; all other text (digits, punctuation, other letters) is cut much as o200k cuts it.
Graphemes are extended grapheme clusters (UAX 29) by `regex`'s \\X, which follows rule GB9c: a
conjunct of Devanagari is one cluster. Which scripts have it depends on its Unicode tables.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vocabshift import _core
from vocabshift.text.regexes import CONTRACTION, JOINERS, NOT_LETTERS, PREFIX

if TYPE_CHECKING:
    import regex

LINKERS: Mapping[str, str] = {
    "Devanagari": "\u094d",
    "Bengali": "\u09cd",
    "Gurmukhi": "\u0a4d",  # not Unicode's: it joins subscripts only, but these always
    "Gujarati": "\u0acd",
    "Oriya": "\u0b4d",
    "Tamil": "",  # the pulli mutes a consonant and joins nothing; see CONJUNCTS
    "Telugu": "\u0c4d",
    "Kannada": "\u0ccd",  # not Unicode's: it joins just as Telugu's does
    "Malayalam": "\u0d4d",
    "Meetei_Mayek": "\uaaf6",  # the historical virama; the apun iyek (U+ABED) joins nothing
}
"""The syllabic scripts of the 22 scheduled languages, and the sign in each that joins the letter
after it to the one before. Unicode's Indic_Conjunct_Break=Linker (rule GB9c of UAX 29) has all of
them but two. The other scripts of these languages, Ol Chiki and Arabic, have no such syllables."""

CONJUNCTS = ("க்ஷ", "ஸ்ரீ", "ஶ்ரீ")
"""Sequences that are one letter though no linker joins them: Tamil kṣa and śrī (two spellings)."""

_SCRIPTS = "".join(rf"\p{{{script}}}" for script in LINKERS)
_LETTER = rf"(?:{'|'.join(CONJUNCTS)}|[\p{{L}}&&[{_SCRIPTS}]])"
_LINKER = "[" + "".join(rf"\u{ord(sign):04x}" for sign in "".join(LINKERS.values())) + "]"
_OTHER = rf"[\p{{L}}&&[^{_SCRIPTS}]]"

SYLLABLES = (
    rf" ?{_LETTER}(?:[\p{{M}}{JOINERS}]*{_LINKER}\u200d?{_LETTER})*[\p{{M}}{JOINERS}]*|"
    rf"{PREFIX}{_OTHER}[\p{{M}}{JOINERS}{_OTHER}]*{CONTRACTION}?|{NOT_LETTERS}"
)
"""A syllable after an optional space; or a run of letters of all other scripts, with marks and
joiners; or what else o200k knows. Meant as a step inside words: it cuts no English word that o200k
leaves whole. ZWJ after a linker asks for another form of the conjunct, and joins; ZWNJ asks for
no conjunct, and ends the syllable (so does GB9c). Any letter may be joined, where GB9c has
consonants only: অ্যা is one syllable."""


def syllable_rules() -> _core.SyllableRules:
    """The syllable rules in the form that the core takes."""
    return _core.SyllableRules(list(LINKERS), "".join(LINKERS.values()), list(CONJUNCTS))


def syllable_borders(text: str) -> list[int]:
    """Where a token may end without cutting an orthographic syllable, as character offsets.

    Ascending, from 1 to len(text); empty for an empty text. Outside of syllables every offset is a
    border, but never one before a mark: every character keeps its accents.
    """
    borders: list[int] = []
    begin = 0
    for piece in _scanner().split(text):
        end = begin + len(piece)
        after_space = begin + piece.startswith(" ")
        if after_space < end and _is_syllabic_letter(text[after_space]):
            borders += range(begin + 1, after_space + 1)
        else:
            borders += range(begin + 1, end)
        borders.append(end)
        begin = end
    return [at for at in borders if at == len(text) or not _is_mark(text[at])]


@functools.cache
def _scanner() -> _core.PreTokenizer:
    return _core.PreTokenizer([syllable_rules()])


def _is_syllabic_letter(character: str) -> bool:
    code = ord(character)
    return bool(_core.char_class(code) & 7) and _core.script(code) in LINKERS


def _is_mark(character: str) -> bool:
    return bool(_core.char_class(ord(character)) & 8)


def grapheme_borders(text: str) -> list[int]:
    """Where extended grapheme clusters end, as character offsets: ascending, up to len(text)."""
    if text.isascii() and "\r" not in text:  # "\r\n" is the only cluster of ASCII
        return list(range(1, len(text) + 1))
    return [match.end() for match in _cluster().finditer(text)]


@functools.cache
def _cluster() -> regex.Pattern[str]:
    import regex  # loaded only for graphemes

    return regex.compile(r"\X")
