"""Normalizations by the names of characters, one character after the other: slow, and obvious.

Nothing here knows of a block, an offset or a regex; of composition it knows `unicodedata`'s.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

SCRIPTS = (
    *("DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA"),
    "MALAYALAM",
)
ROWS = {
    "KA KHA GA GHA": "NGA",
    "CA CHA JA JHA": "NYA",
    "TTA TTHA DDA DDHA": "NNA",
    "TA THA DA DHA": "NA",
    "PA PHA BA BHA": "MA",
}
URDU = "ي=ی ى=ی ك=ک ه=ہ ە=ہ ۀ=ۂ ة=ۃ"
LETTERS = {
    "Urdu": URDU,
    "Sindhi": "ی=ي ى=ي ہ=ه ھ=ه ە=ه",
    "Kashmiri": URDU.replace(" ة=ۃ", "") + " ۅ=ۄ ٳ=اٟ",
}


def named(name: str) -> str:
    """The character of a name, "" if there is none."""
    try:
        return unicodedata.lookup(name)
    except KeyError:
        return ""


def name(text: str, place: int = 0) -> str:
    """The name of the character at a place, "" outside and for none."""
    return unicodedata.name(text[place], "") if 0 <= place < len(text) else ""


def replaced(text: str, pairs: Mapping[str, str]) -> str:
    """The first pair that fits each place, longest first."""
    out, place = "", 0
    while place < len(text):
        fits = [one for one in sorted(pairs, key=len)[::-1] if text.startswith(one, place)]
        out += pairs[fits[0]] if fits else text[place]
        place += len(fits[0]) if fits else 1
    return out


def _nasal_before(text: str, place: int) -> tuple[str, str]:
    """(nasal consonant with virama, anusvara) of the stop that begins there, or two times ""."""
    plain = unicodedata.normalize("NFD", text[place : place + 1])  # without its nukta
    script, _, letter = name(plain).partition(" LETTER ")
    sign = "BINDI" if script == "GURMUKHI" else "ANUSVARA"
    for row, nasal in ROWS.items():
        if script in SCRIPTS and script != "TAMIL" and letter in row.split():
            joined = named(f"{script} LETTER {nasal}") + named(f"{script} SIGN VIRAMA")
            return joined, named(f"{script} SIGN {sign}")
    return "", ""


def fifth_case(text: str) -> str:
    out = ""
    for place, one in enumerate(text):
        joined, sign = _nasal_before(text, place + 1)
        out += joined if one == sign else one
    return out


def anusvara(text: str) -> str:
    out, place = "", 0
    while place < len(text):
        joined, sign = _nasal_before(text, place + 2)
        found = joined and text.startswith(joined, place)
        out += sign if found else text[place]
        place += 2 if found else 1
    return out


def dandas(text: str) -> str:
    own = {"\u09f7": "।"}
    for script in SCRIPTS[1:]:
        own |= {chr(_first(script) + 0x64): "।", chr(_first(script) + 0x65): "॥"}
    text = replaced(text, own)
    out, place = "", 0
    while place < len(text):
        at = place - 2 if text[:place].endswith(" ") else place - 1
        ends = 0 <= at and _script(text[at]) in ("DEVANAGARI", "BENGALI", "GURMUKHI", "ORIYA")
        if text[place] != "|" or not ends or text[at] in "।॥":
            out += text[place]
        elif text.startswith("||", place):
            out += "॥"
            place += 1
        else:
            out += "।"
        place += 1
    return out


def _first(script: str) -> int:
    """The first of the 128 characters of a script, of which some have no names."""
    return ord(named(f"{script} LETTER KA")) // 128 * 128


def _script(one: str) -> str:
    return next((script for script in SCRIPTS if 0 <= ord(one) - _first(script) < 128), "")


ARCHAIC = (
    "\u0904\u093a\u093b\u094e\u094f\u0955\u0956\u0957\u09fc\u0af9\u0c04\u0c84\u0d04\u0d3a\u0d3b\u0d3c"
    "\u0d4e\u0d54\u0d55\u0d56\u0d58\u0d59\u0d5a\u0d5b\u0d5c\u0d5d\u0d5e"
    "\u0d7a\u0d7b\u0d7c\u0d7d\u0d7e\u0d7f"
)
"""Of these `visarga` promises nothing: archaic letters, fractions, and chillus, which end words."""


def visarga(text: str) -> str:
    out = ""
    for place, one in enumerate(text):
        of_letter = name(text, place + 1).replace(" VOWEL CANDRA", " LETTER CANDRA")
        script, letter, _ = of_letter.partition(" LETTER ")
        kinds = (f"{script} LETTER ", f"{script} VOWEL ", f"{script} SIGN NUKTA")
        in_word = letter and script in SCRIPTS and name(text, place - 1).startswith(kinds)
        out += named(f"{script} SIGN VISARGA") if one == ":" and in_word else one
    return out


def spaces(text: str) -> str:
    out = ""
    for one in text:
        is_mark = name(one) in ("SOFT HYPHEN", "WORD JOINER", "ZERO WIDTH NO-BREAK SPACE")
        directions = ("LEFT-TO-RIGHT ", "RIGHT-TO-LEFT ", "POP DIRECTIONAL ", "FIRST STRONG ")
        if is_mark or name(one).startswith(directions):
            continue
        is_space = unicodedata.category(one) == "Zs" or name(one) == "ZERO WIDTH SPACE"
        out += " " if is_space else one
    return out


def punctuation(text: str) -> str:
    out = ""
    for one in text:
        if "QUOTATION MARK" in name(one) and one in "“”„‟‘’‚‛":
            out += '"' if "DOUBLE" in name(one) else "'"
        else:
            out += {"EN DASH": "-", "EM DASH": "-", "ACUTE ACCENT": "'"}.get(name(one), one)
    return out.replace("…", "...")


def arabic_forms(text: str) -> str:
    """ARABIC LETTER BEH INITIAL FORM is ARABIC LETTER BEH; the names of ligatures say less."""
    return "".join(_letters_of(one) for one in text)


def _letters_of(one: str) -> str:
    if not (one == "\ufdf2" or "\ufb50" <= one <= "\ufbff" or "\ufe80" <= one <= "\ufefc"):
        return one
    words = name(one).split()
    letter = words[-1:] == ["FORM"] and named(" ".join(words[:-2]))
    return letter or unicodedata.normalize("NFKC", one)


def arabic_letters(text: str, languages: Sequence[str]) -> str:
    tables = [dict(pair.split("=") for pair in LETTERS[language].split()) for language in languages]
    agreed = {one: to for one, to in tables[0].items() if all(t.get(one) == to for t in tables)}
    text = _with_marks(text.replace("ـ", ""))
    if "Kashmiri" not in languages:
        text = replaced(text, {"ی\u0654": "ئ", "ى\u0654": "ئ"})
    text = "".join(named(f"EXTENDED {name(one)}") or one for one in replaced(text, agreed))
    return _with_marks(text)


def _with_marks(text: str) -> str:
    """A letter and the madda or hamza after it in one character, where there is one."""
    out = ""
    for one in text:
        both = unicodedata.normalize("NFC", out[-1:] + one)
        whole = name(out, len(out) - 1).startswith("ARABIC LETTER") and len(both) == 1
        out = out[:-1] + both if whole and out else out + one
    return out


def arabic_marks(text: str) -> str:
    kept = ("ARABIC MADDAH ABOVE", "HAMZA ABOVE", "HAMZA BELOW")
    return "".join(
        one
        for one in text
        if not "\u064b" <= one <= "\u06ed"
        or unicodedata.category(one) != "Mn"
        or name(one).endswith(kept)
    )


def arabic_joiners(text: str) -> str:
    """For letters that have forms in Unicode: one that joins to the next has an initial form."""
    out = ""
    for place, one in enumerate(text):
        if one != "\u200c":
            out += one
            continue
        letter = out.rstrip("\u064e\u064f")[-1:]
        after = text[place:].lstrip("\u200c")[:1] or " "
        joins = "ARABIC LETTER" not in name(letter) or named(f"{name(letter)} INITIAL FORM")
        is_last = (
            "ARABIC LETTER" in name(out[-1:])
            and not after.isalpha()
            and not unicodedata.combining(after)
        )
        if joins and not is_last and not out.endswith("\u200c"):
            out += one
    return out
