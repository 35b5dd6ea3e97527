"""Generate the tables of cpp/core from the Unicode classes of the installed `tokenizers`.

Usage: python cpp/tables/generate.py [FOLDER]

unicode_tables.cpp has what the scanners and the normal form need, category_tables.cpp the general
categories, for regexes.

A pre-tokenizer is exact only if its classes are those of the engine that will run the exported
regex. That engine (Oniguruma inside `tokenizers`) is a Unicode version or two away from Python's
`regex` and `unicodedata`, so every code point is asked of it and of nothing else. The tables of
normal form C come from `unicodedata`: what they say of an assigned character never changes. Those
that `tokenizers` is too old for are left out.
tests/unit/test_unicode_tables.py repeats the questions against the installed version.
"""

from __future__ import annotations

import sys
import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

# Bits of the class table; unicode.h names them.
CLASSES = {
    r"\p{Lu}": 1,
    r"\p{Lt}": 1,
    r"\p{Ll}": 2,
    r"\p{Lm}": 4,
    r"\p{Lo}": 4,
    r"\p{M}": 8,
    r"\p{N}": 16,
    r"\s": 32,
    r"[\r\n]": 64,
    r"[\p{P}\p{S}]": 128,
}
SCRIPTS = """
Common Inherited Latin Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali
Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian
Hangul Ethiopic Cherokee Canadian_Aboriginal Ogham Runic Khmer Mongolian Hiragana Katakana Bopomofo
Han Yi Old_Italic Gothic Deseret Tagalog Hanunoo Buhid Tagbanwa Limbu Tai_Le Linear_B Ugaritic
Shavian Osmanya Cypriot Braille Buginese Coptic New_Tai_Lue Glagolitic Tifinagh Syloti_Nagri
Old_Persian Kharoshthi Balinese Cuneiform Phoenician Phags_Pa Nko Sundanese Lepcha Ol_Chiki Vai
Saurashtra Kayah_Li Rejang Lycian Carian Lydian Cham Tai_Tham Tai_Viet Avestan Egyptian_Hieroglyphs
Samaritan Lisu Bamum Javanese Meetei_Mayek Imperial_Aramaic Old_South_Arabian Inscriptional_Parthian
Inscriptional_Pahlavi Old_Turkic Kaithi Batak Brahmi Mandaic Chakma Meroitic_Cursive
Meroitic_Hieroglyphs Miao Sharada Sora_Sompeng Takri Caucasian_Albanian Bassa_Vah Duployan Elbasan
Grantha Pahawh_Hmong Khojki Linear_A Mahajani Manichaean Mende_Kikakui Modi Mro Old_North_Arabian
Nabataean Palmyrene Pau_Cin_Hau Old_Permic Psalter_Pahlavi Siddham Khudawadi Tirhuta Warang_Citi
Ahom Anatolian_Hieroglyphs Hatran Multani Old_Hungarian SignWriting Adlam Bhaiksuki Marchen Newa
Osage Tangut Masaram_Gondi Nushu Soyombo Zanabazar_Square Dogra Gunjala_Gondi Makasar Medefaidrin
Hanifi_Rohingya Sogdian Old_Sogdian Elymaic Nandinagari Nyiakeng_Puachue_Hmong Wancho Chorasmian
Dives_Akuru Khitan_Small_Script Yezidi Cypro_Minoan Old_Uyghur Tangsa Toto Vithkuqi Kawi Nag_Mundari
Garay Gurung_Khema Kirat_Rai Ol_Onal Sunuwar Todhri Tulu_Tigalari
""".split()
CATEGORIES = (
    *("Cn", "Cc", "Cf", "Co", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No"),
    *("Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"),
)  # in the order of Category in unicode.h
CASES = {"[[:alpha:]]": 32, "[[:upper:]]": 64, "[[:lower:]]": 128}
SCALARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
BLOCK = 128  # code points per block of the two-stage tables


def members(pattern: str) -> list[str]:
    """Every code point that the engine's class `pattern` matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found: list[str] = []
    for at in range(0, len(SCALARS), 4096):
        text = "".join(SCALARS[at : at + 4096])
        found += "".join(piece for piece, _ in split.pre_tokenize_str(text))
    return found


@dataclass(frozen=True)
class Nfc:
    """What the core composes and decomposes with."""

    values: list[int]  # of each code point, see NfcValue in unicode.h
    composed: dict[int, int]  # second << 32 | first of a pair -> what they compose to
    decomposed: dict[int, str]  # of code points; Hangul's syllables are taken apart by rule


def nfc() -> Nfc:
    """Of the code points on which Python and `tokenizers` agree; the others are unknown."""
    second, unsure, composed, unknown = 256, 512, 1024, 2048
    not_agreed = disputed()
    found = Nfc([0] * 0x110000, {}, {})
    for character in SCALARS:
        code = ord(character)
        parts = unicodedata.decomposition(character).split()
        whole = unicodedata.normalize("NFD", character)
        if character in not_agreed or unicodedata.category(character) == "Cn":
            found.values[code] = unsure | unknown
            continue
        if whole != character and not 0xAC00 <= code < 0xD7A4:
            found.decomposed[code] = whole
        if unicodedata.normalize("NFC", character) != character:
            found.values[code] = unsure
            continue
        found.values[code] |= unicodedata.combining(character)
        if whole != character:
            found.values[code] |= composed
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.composed[int(parts[1], 16) << 32 | int(parts[0], 16)] = code
    for pair in found.composed:
        found.values[pair >> 32] |= second
    for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)):  # of Hangul: composed by rule
        found.values[code] = unsure | second
    return found


def disputed() -> set[str]:
    """Characters whose place in a normal form is not the same in Python and in `tokenizers`."""
    theirs = {form: getattr(normalizers, form)().normalize_str for form in ("NFC", "NFD")}
    old = unicodedata.ucd_3_2_0
    marks = {old.combining(c): c for c in reversed(SCALARS) if old.combining(c)}
    found = set()
    for character in SCALARS:
        probes = [character]
        if unicodedata.combining(character):
            probes += [f"a{character}{mark}a{mark}{character}" for mark in marks.values()]
        for form, normalize in theirs.items():
            if any(normalize(text) != unicodedata.normalize(form, text) for text in probes):
                found |= {character, *unicodedata.normalize("NFD", character)}
    return found


def two_stage(values: list[int]) -> tuple[list[int], list[int]]:
    """(block number per BLOCK code points, the distinct blocks one after another)."""
    numbers: dict[tuple[int, ...], int] = {}
    index = []
    for at in range(0, 0x110000, BLOCK):
        block = tuple(values[at : at + BLOCK])
        index.append(numbers.setdefault(block, len(numbers)))
    return index, [value for block in numbers for value in block]


def array(ctype: str, name: str, values: list[int]) -> str:
    """A C++ array definition, 24 values a line."""
    lines = [",".join(map(str, values[at : at + 24])) + "," for at in range(0, len(values), 24)]
    return f"const {ctype} {name}[{len(values)}] = {{\n" + "\n".join(lines) + "\n};\n"


def category_tables() -> str:
    """category_tables.cpp: the general category of each code point, and bits for its case."""
    values = [0] * 0x110000
    for number, category in enumerate(CATEGORIES):
        for character in members(rf"\p{{{category}}}"):
            values[ord(character)] = number
    for regex, bit in CASES.items():
        for character in members(regex):
            values[ord(character)] |= bit
    index, blocks = two_stage(values)
    return (
        "// Generated by cpp/tables/generate.py from the classes of tokenizers "
        f"{tokenizers.__version__}. Do not edit.\n"
        '#include "core/unicode.h"\n\nnamespace vocabshift::tables {\n\n'
        + array("std::uint16_t", "kCategoryIndex", index)
        + array("std::uint8_t", "kCategoryBlocks", blocks)
        + "\n}  // namespace vocabshift::tables\n"
    )


def main() -> None:
    """Write the tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "core"
    (folder / "category_tables.cpp").write_text(category_tables(), encoding="utf-8")
    output = folder / "unicode_tables.cpp"
    classes = [0] * 0x110000
    for pattern, bit in CLASSES.items():
        for character in members(pattern):
            classes[ord(character)] |= bit
    scripts, names = [0] * 0x110000, ["Unknown"]
    for script in SCRIPTS:
        try:
            found = members(rf"\p{{{script}}}")
        except Exception:  # a script younger than the engine: the wrapper raises plain Exception
            continue
        if found:
            names.append(script)
            for character in found:
                scripts[ord(character)] = len(names) - 1
    class_index, class_blocks = two_stage(classes)
    script_index, script_blocks = two_stage(scripts)
    normal = nfc()
    nfc_index, nfc_blocks = two_stage(normal.values)
    pairs = sorted(normal.composed)
    decomposed = sorted(normal.decomposed)
    begins = list(accumulate((len(normal.decomposed[code]) for code in decomposed), initial=0))
    parts = [ord(part) for code in decomposed for part in normal.decomposed[code]]
    quoted = [f'"{name}"' for name in names]
    rows = [", ".join(quoted[at : at + 5]) + "," for at in range(0, len(quoted), 5)]
    output.write_text(
        "// Generated by cpp/tables/generate.py from the classes of tokenizers "
        f"{tokenizers.__version__} and Unicode {unicodedata.unidata_version}. Do not edit.\n"
        '#include "core/unicode.h"\n\nnamespace vocabshift::tables {\n\n'
        + array("std::uint16_t", "kClassIndex", class_index)
        + array("std::uint8_t", "kClassBlocks", class_blocks)
        + array("std::uint16_t", "kScriptIndex", script_index)
        + array("std::uint8_t", "kScriptBlocks", script_blocks)
        + f"const std::size_t kScriptCount = {len(names)};\n"
        + f"const char* const kScriptNames[{len(names)}] = {{\n"
        + "\n".join(rows)
        + "\n};\n"
        + f"const std::uint8_t kScriptHan = {names.index('Han')};\n"
        + array("std::uint16_t", "kNfcIndex", nfc_index)
        + array("std::uint16_t", "kNfcBlocks", nfc_blocks)
        + array("std::uint64_t", "kCompositions", pairs)
        + array("char32_t", "kComposed", [normal.composed[pair] for pair in pairs])
        + f"const std::size_t kCompositionCount = {len(pairs)};\n"
        + array("char32_t", "kDecomposed", decomposed)
        + array("std::uint16_t", "kPartsBegin", begins)
        + array("char32_t", "kParts", parts)
        + f"const std::size_t kDecomposedCount = {len(decomposed)};\n"
        + "\n}  // namespace vocabshift::tables\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
