"""Indian text in Latin letters, made by rule: ISO 15919, and two informal spellings.

It stands in for text that people type without their script, which we do not have: no abbreviations,
no English words between, and one spelling where people have many. `iso` follows ISO 15919 for the
nine scripts whose blocks keep the order of ISCII (without its colon between vowels). `informal`
drops its diacritics, as most people do (`doubled`: and writes long vowels as aa, ee, oo), spells ch
and sh out, and drops the final a that Indo-Aryan languages do not speak.
"""

from __future__ import annotations

import re
import unicodedata

BLOCKS = range(0x900, 0xD80, 0x80)
LANGUAGES = (
    *(
        "as",
        "bn",
        "gu",
        "hi",
        "kn",
        "ks_Deva",
        "mai",
        "ml",
        "mni_Beng",
        "mr",
        "ne",
        "or",
        "pa",
        "sa",
    ),
    *("ta", "te"),
)
"""The files of FLORES in these scripts."""

SAMPLE = ("asm", "ben", "guj", "hin", "kan", "mal", "mar", "npi", "ory", "pan", "tam", "tel")
"""And those of our own sample texts."""

SPEAK_FINAL_A = {"sa", "or", "ta", "te", "kn", "ml", "mni_Beng", "ory", "tam", "tel", "kan", "mal"}

_LETTERS = {
    0x05: "a ā i ī u ū r̥ l̥ ê e ē ai ô o ō au",
    0x15: "k kh g gh ṅ c ch j jh ñ ṭ ṭh ḍ ḍh ṇ t th d dh n ṉ p ph b bh m y r ṟ l ḷ ḻ v ś ṣ s h",
    0x3E: "ā i ī u ū r̥ r̥̄ ê e ē ai ô o ō au",
    0x01: "m̐ ṁ ḥ",
    0x3D: "’",
    0x66: "0 1 2 3 4 5 6 7 8 9",
}
_AT = {
    first + number: letter
    for first, letters in _LETTERS.items()
    for number, letter in enumerate(letters.split())
}
"""By the place in a block: vowels, consonants, vowel signs, marks, digits."""

_OTHERS = {"ൺ": "ṇ", "ൻ": "n", "ർ": "r", "ൽ": "l", "ൾ": "ḷ", "ൿ": "k", "ৎ": "t", "।": ".", "॥": "."}
_OTHERS |= {"ੰ": "ṁ", "ੱ": "", "\u200c": "", "\u200d": ""}
_ASSAMESE = {"ৰ": "r", "ৱ": "w"}
_DOTTED = {"k": "q", "kh": "ḵẖ", "g": "ġ", "j": "z", "ḍ": "ṛ", "ḍh": "ṛh", "ph": "f", "y": "ẏ"}
_NUKTA, _VIRAMA, _ADDAK = 0x3C, 0x4D, "ੱ"


def iso(text: str) -> str:
    """The text in ISO 15919, in NFC; other scripts stay."""
    out: list[str] = []
    inherent = doubles = False  # whether the last consonant has its a; whether the next is two
    for one in unicodedata.normalize("NFC", text):
        offset = ord(one) & 0x7F if BLOCKS.start <= ord(one) < BLOCKS.stop else 0
        if offset == _NUKTA and out:
            out[-1] = _DOTTED.get(out[-1], out[-1])
            continue
        is_sign = 0x3E <= offset <= _VIRAMA
        if inherent and not is_sign:
            out.append("a")
        letter = _ASSAMESE.get(one) or _OTHERS.get(one, _AT.get(offset, one))
        if offset != _VIRAMA:
            out += [letter[:1]] * doubles + [letter]
        inherent = 0x15 <= offset <= 0x39 or one in _ASSAMESE
        doubles = one == _ADDAK
    return unicodedata.normalize("NFC", "".join(out) + "a" * inherent)


_SPELLED = {
    "ch": "chh",
    "c": "ch",
    "ś": "sh",
    "ṣ": "sh",
    "r̥": "ri",
    "ḵẖ": "kh",
    "ġ": "g",
    "ḻ": "zh",
}
_LONG = {"ā": "aa", "ī": "ee", "ū": "oo"}


def informal(text: str, language: str, *, doubled: bool = False) -> str:
    """The text as people might type it."""
    spelled = iso(text)
    if language not in SPEAK_FINAL_A:
        spelled = re.sub(r"(?<=\w)(?<![aeiouāīūēōêô])a\b", "", spelled)
    spelled = re.sub("ṁ(?=[pbm])", "m", spelled).replace("ṁ", "n").replace("m̐", "n")
    pairs = {**_SPELLED, **(_LONG if doubled else {})}
    found = re.compile("|".join(sorted(pairs, key=len, reverse=True)))
    spelled = found.sub(lambda match: pairs[match.group()], spelled)
    apart = unicodedata.normalize("NFD", spelled)
    return "".join(one for one in apart if not "\u0300" <= one <= "\u036f").lower()
