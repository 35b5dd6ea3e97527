"""Languages and labels: code, English name and scripts, as data.

The 22 languages of the Eighth Schedule of the Constitution of India, and others that the demo and
the studies use. Labels of a corpus may be any text; this table only adds facts about known ones.
Codes: ISO 639-3 and 639-1; scripts by their Unicode names, the usual one first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

ALL = "all"
"""In results: all languages together, and text without labels."""

UNLABELLED = "unlabelled"
"""In reports by language: the documents of a corpus that have no label (None in the corpus)."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language."""

    code: str  # ISO 639-3
    name: str  # English
    scripts: tuple[str, ...]  # Unicode script names
    short_code: str | None = None  # ISO 639-1
    is_scheduled: bool = False  # Eighth Schedule of the Constitution of India


def _indian(code: str, short_code: str | None, name: str, *scripts: str) -> Language:
    return Language(code, name, scripts, short_code, is_scheduled=True)


def _other(code: str, short_code: str, name: str, *scripts: str) -> Language:
    return Language(code, name, scripts, short_code)


SCHEDULED: tuple[Language, ...] = (
    _indian("asm", "as", "Assamese", "Bengali"),
    _indian("ben", "bn", "Bengali", "Bengali"),
    _indian("brx", None, "Bodo", "Devanagari"),
    _indian("doi", None, "Dogri", "Devanagari"),
    _indian("guj", "gu", "Gujarati", "Gujarati"),
    _indian("hin", "hi", "Hindi", "Devanagari"),
    _indian("kan", "kn", "Kannada", "Kannada"),
    _indian("kas", "ks", "Kashmiri", "Arabic", "Devanagari"),
    _indian("kok", None, "Konkani", "Devanagari"),
    _indian("mai", None, "Maithili", "Devanagari"),
    _indian("mal", "ml", "Malayalam", "Malayalam"),
    _indian("mni", None, "Manipuri", "Meetei_Mayek", "Bengali"),
    _indian("mar", "mr", "Marathi", "Devanagari"),
    _indian("nep", "ne", "Nepali", "Devanagari"),
    _indian("ori", "or", "Odia", "Oriya"),
    _indian("pan", "pa", "Punjabi", "Gurmukhi"),
    _indian("san", "sa", "Sanskrit", "Devanagari"),
    _indian("sat", None, "Santali", "Ol_Chiki"),
    _indian("snd", "sd", "Sindhi", "Arabic", "Devanagari"),
    _indian("tam", "ta", "Tamil", "Tamil"),
    _indian("tel", "te", "Telugu", "Telugu"),
    _indian("urd", "ur", "Urdu", "Arabic"),
)

LANGUAGES: tuple[Language, ...] = (
    *SCHEDULED,
    _other("amh", "am", "Amharic", "Ethiopic"),
    _other("ara", "ar", "Arabic", "Arabic"),
    _other("deu", "de", "German", "Latin"),
    _other("ell", "el", "Greek", "Greek"),
    _other("eng", "en", "English", "Latin"),
    _other("est", "et", "Estonian", "Latin"),
    _other("fas", "fa", "Persian", "Arabic"),
    _other("fin", "fi", "Finnish", "Latin"),
    _other("fra", "fr", "French", "Latin"),
    _other("heb", "he", "Hebrew", "Hebrew"),
    _other("hye", "hy", "Armenian", "Armenian"),
    _other("ind", "id", "Indonesian", "Latin"),
    _other("ita", "it", "Italian", "Latin"),
    _other("jpn", "ja", "Japanese", "Han", "Hiragana", "Katakana"),
    _other("kat", "ka", "Georgian", "Georgian"),
    _other("khm", "km", "Khmer", "Khmer"),
    _other("kor", "ko", "Korean", "Hangul", "Han"),
    _other("lao", "lo", "Lao", "Lao"),
    _other("mya", "my", "Burmese", "Myanmar"),
    _other("pol", "pl", "Polish", "Latin"),
    _other("por", "pt", "Portuguese", "Latin"),
    _other("rus", "ru", "Russian", "Cyrillic"),
    _other("sin", "si", "Sinhala", "Sinhala"),
    _other("spa", "es", "Spanish", "Latin"),
    _other("swa", "sw", "Swahili", "Latin"),
    _other("tha", "th", "Thai", "Thai"),
    _other("tur", "tr", "Turkish", "Latin"),
    _other("ukr", "uk", "Ukrainian", "Cyrillic"),
    _other("vie", "vi", "Vietnamese", "Latin"),
    _other("zho", "zh", "Chinese", "Han"),
)

_FAMILIES = {
    "Indo-European": "asm ben deu doi ell eng fas fra guj hin hye ita kas kok mai mar nep ori "
    "pan pol por rus san sin snd spa ukr urd",
    "Dravidian": "kan mal tam tel",
    "Sino-Tibetan": "brx mni mya zho",
    "Austroasiatic": "khm sat vie",
    "Afro-Asiatic": "amh ara heb",
    "Austronesian": "ind",
    "Japonic": "jpn",
    "Kartvelian": "kat",
    "Koreanic": "kor",
    "Niger-Congo": "swa",
    "Tai-Kadai": "lao tha",
    "Turkic": "tur",
    "Uralic": "est fin",
}
_FAMILY_OF = {code: family for family, codes in _FAMILIES.items() for code in codes.split()}

_SAME_AS = {
    "arb": "ara",
    "cmn": "zho",
    "ekk": "est",
    "gom": "kok",
    "npi": "nep",
    "ory": "ori",
    "pes": "fas",
    "swh": "swa",
}
"""Members that stand for their macrolanguage in common corpora, such as FLORES."""

_SCRIPTS = {
    "Arab": "Arabic",
    "Beng": "Bengali",
    "Cyrl": "Cyrillic",
    "Deva": "Devanagari",
    "Gujr": "Gujarati",
    "Guru": "Gurmukhi",
    "Hans": "Han",
    "Hant": "Han",
    "Knda": "Kannada",
    "Latn": "Latin",
    "Mlym": "Malayalam",
    "Mtei": "Meetei_Mayek",
    "Olck": "Ol_Chiki",
    "Orya": "Oriya",
    "Sinh": "Sinhala",
    "Taml": "Tamil",
    "Telu": "Telugu",
}
"""ISO 15924 codes that occur in labels."""

_BY_CODE = {language.code: language for language in LANGUAGES} | {
    language.short_code: language for language in LANGUAGES if language.short_code is not None
}


def script_name(code: str) -> str:
    """The Unicode name of a script by its ISO 15924 code; other text is returned unchanged."""
    return _SCRIPTS.get(code, code)


def find_language(label: str | None) -> Language | None:
    """The language of a corpus label, or None if it is not in the table.

    Knows three- and two-letter codes, each with an optional script: `ks_Arab`, `hi-Latn`. With a
    script, `scripts` holds only that one, even if the language is not usually written in it.
    """
    parts = re.fullmatch(r"([a-z]{2,3})(?:[_-]([A-Z][a-z]{3}))?", label or "")
    if parts is None:
        return None
    code, script = parts.groups()
    language = _BY_CODE.get(_SAME_AS.get(code, code))
    if language is None or script is None:
        return language
    name = _SCRIPTS.get(script)
    return None if name is None else replace(language, scripts=(name,))


def family(label: str | None) -> str | None:
    """The language family of a corpus label, or None if it is not in the table."""
    language = find_language(label)
    return None if language is None else _FAMILY_OF[language.code]


# The scripts whose words Matra favours ("Matra: Sentence-Constrained Superword Tokenization for
# India's Scheduled Languages", Table 1: fifteen Unicode blocks, Syriac and Sinhala among them).

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
