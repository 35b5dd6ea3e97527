"""Unifies variant spellings of Urdu, Sindhi and Kashmiri in Arabic script, as data and rules.

Owns which characters are equivalent in which language: the forms of yeh, kaf and heh, digits,
letters with a mark in one character and in two, presentation forms, and where marks and ZWNJ say
nothing. The languages contradict each other (Urdu writes ی for what Sindhi writes ي), and a
normalizer inside a tokenizer does not know which of them it reads. So a rule takes languages, and
does what all of these agree on.

Sources: The Unicode Standard, section 9.2 (Arabic) and its files ArabicShaping.txt (joining types)
and UnicodeData.txt (presentation forms); the letters of each language in CLDR.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from vocabshift.text.indic_spelling import Replacement, Rule, regex_step, string_step

_DIGITS = {chr(0x660 + value): chr(0x6F0 + value) for value in range(10)}
_LETTERS: Mapping[str, Mapping[str, str]] = {
    "Urdu": {
        **{yeh + "\u0654": "\u0626" for yeh in "\u06cc\u0649"},
        **dict.fromkeys("\u064a\u0649", "\u06cc"),  # yeh, alef maksura: Farsi yeh
        "\u0643": "\u06a9",  # kaf: keheh
        **dict.fromkeys("\u0647\u06d5", "\u06c1"),  # heh, ae: heh goal; ھ is for aspirates
        "\u06c0": "\u06c2",  # the same with hamza
        "\u0629": "\u06c3",  # teh marbuta
        **_DIGITS,
    },
    "Sindhi": {
        **{yeh + "\u0654": "\u0626" for yeh in "\u06cc\u0649"},
        **dict.fromkeys("\u06cc\u0649", "\u064a"),  # Farsi yeh, alef maksura: yeh
        # Heh goal, heh doachashmee, ae: heh. Sindhi has one heh, and writes aspirates with it too.
        # Subtle: keheh is kh here, k is swash kaf, and no text says which of them a kaf would be.
        **dict.fromkeys("\u06c1\u06be\u06d5", "\u0647"),
        **_DIGITS,
    },
    "Kashmiri": {  # whose yeh with hamza is a vowel, and no ئ
        **dict.fromkeys("\u064a\u0649", "\u06cc"),
        "\u0643": "\u06a9",
        **dict.fromkeys("\u0647\u06d5", "\u06c1"),
        "\u06c0": "\u06c2",
        "\u06c5": "\u06c4",  # Kirghiz oe: waw with ring
        "\u0673": "\u0627\u065f",  # deprecated
        **_DIGITS,
    },
}
LANGUAGES = tuple(_LETTERS)

_COMPOSED = "آأؤإئۀۂۓ"  # of a letter and a mark, by NFC
_TATWEEL = "\u0640"
_ZWNJ = "\u200c"
_NOT_JOINING = "".join(  # to the next letter: Joining_Type R and U
    chr(code)
    for first, last in (
        *((0x621, 0x625), (0x627, 0x627), (0x629, 0x629), (0x62F, 0x632), (0x648, 0x648)),
        *((0x671, 0x677), (0x688, 0x699), (0x6C0, 0x6C0), (0x6C3, 0x6CB), (0x6CD, 0x6CD)),
        *((0x6CF, 0x6CF), (0x6D2, 0x6D3), (0x6D5, 0x6D5), (0x6EE, 0x6EF)),
    )
    for code in range(first, last + 1)
)
_MARKS = "".join(  # vowels, gemination, and the signs of recitation
    chr(code)
    for first, last in (
        *((0x64B, 0x652), (0x656, 0x65E), (0x670, 0x670)),
        *((0x6D6, 0x6DC), (0x6DF, 0x6E4), (0x6E7, 0x6E8), (0x6EA, 0x6ED)),
    )
    for code in range(first, last + 1)
)


def arabic_forms(_: Sequence[str]) -> list[Replacement]:
    """Write presentation forms (of old fonts and PDF files) as their letters."""
    forms = map(chr, (*range(0xFB50, 0xFBFF + 1), 0xFDF2, *range(0xFE80, 0xFEFC + 1)))
    decomposed = ((form, unicodedata.decomposition(form).split()[1:]) for form in forms)
    return [
        string_step(form, "".join(chr(int(part, 16)) for part in parts))
        for form, parts in decomposed
        if parts
    ]


def arabic_letters(languages: Sequence[str]) -> list[Replacement]:
    """Write yeh, kaf, heh and digits as :LANGUAGE does (all: where they agree); drop tatweel."""
    first, *others = (_LETTERS[name] for name in LANGUAGES if name in languages)
    agreed = {
        variant: letter
        for variant, letter in first.items()
        if all(other.get(variant) == letter for other in others)
    }
    # Before the letters change, and again after that: either may bring a letter to its mark.
    composed = [string_step(unicodedata.normalize("NFD", one), one) for one in _COMPOSED]
    return [
        regex_step(f"{_TATWEEL}+", "", _TATWEEL),
        *composed,
        *(string_step(variant, letter) for variant, letter in agreed.items()),
        *composed,
    ]


def arabic_marks(_: Sequence[str]) -> list[Replacement]:
    """Remove the marks of vowels and of recitation; Kashmiri loses its vowels."""
    return [regex_step(f"[{_MARKS}]+", "", _MARKS)]


def arabic_joiners(_: Sequence[str]) -> list[Replacement]:
    """Keep ZWNJ in Arabic script only where two letters would join without it."""
    return [
        regex_step(f"{_ZWNJ}{{2,}}", _ZWNJ, _ZWNJ),
        regex_step(f"(?<=[{_NOT_JOINING}]){_ZWNJ}", "", _ZWNJ),
        regex_step(f"(?<=[{_NOT_JOINING}][{_MARKS}]){_ZWNJ}", "", _ZWNJ),
        regex_step(rf"(?<=\p{{Arabic}}){_ZWNJ}(?![\p{{L}}\p{{M}}])", "", _ZWNJ),
    ]


RULES: Mapping[str, Rule] = {
    "arabic-forms": Rule(arabic_forms),
    "arabic-marks": Rule(arabic_marks),
    "arabic-joiners": Rule(arabic_joiners),
    "arabic-letters": Rule(arabic_letters, LANGUAGES),
}
