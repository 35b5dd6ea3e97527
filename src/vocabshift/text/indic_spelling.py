"""Unifies variant spellings in the scripts of India, as data and rules.

Owns which signs are equivalent: anusvara and nasal consonant before a stop (the fifth case of each
varga), nukta letters, vowels composed of a vowel and a sign, chillus, joiners without effect,
digits, dandas and visargas typed as "|" and ":". Each rule is a list of replacements that `Replace`
components of tokenizer.json can express, so that training and inference see the same text.
`normalize` runs them. `arabic_spelling` has the rules of Arabic script.

Sources: the fifth case as in "Indian language tokenizers" (section 5.1, Fig. 3); sequences that
stand for vowels, The Unicode Standard, section 12 ("do not use"); chillus, UAX 15 leaves them;
spaces, punctuation, dandas and visargas are kinds of change that the study makes with IndicNLP.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_STOPS = ((0x15, 0x18), (0x1A, 0x1D), (0x1F, 0x22), (0x24, 0x27), (0x2A, 0x2D))
_NASALS = (0x19, 0x1E, 0x23, 0x28, 0x2E)  # the fifth of each varga
_NUKTA_STOPS = ((0x58, 0x59, 0x5A), (0x5B,), (0x5C, 0x5D), (), (0x5E,))  # as one character
_ANUSVARA, _NUKTA, _VIRAMA = 0x02, 0x3C, 0x4D
_SIGNS = (0x3E, 0x4C)  # vowel signs


@dataclass(frozen=True, slots=True)
class Replacement:
    """Every match becomes `content`; replacements run in order, each over the whole text."""

    pattern: str
    content: str
    is_regex: bool
    any_of: frozenset[str]  # a text without any of these characters has no match

    @property
    def spec(self) -> dict[str, Any]:
        """The component of tokenizer.json."""
        kind = "Regex" if self.is_regex else "String"
        return {"type": "Replace", "pattern": {kind: self.pattern}, "content": self.content}


@dataclass(frozen=True, slots=True)
class Brahmic:
    """A script whose block keeps the order of ISCII: a letter is the block plus an offset."""

    block: int
    digits: int  # of zero
    has_anusvara: bool = True  # that stands for a nasal consonant
    has_nukta: bool = False

    def at(self, offset: int) -> str:
        """The character at an offset."""
        return chr(self.block + offset)


BRAHMIC: Mapping[str, Brahmic] = {
    "Devanagari": Brahmic(0x900, 0x966, has_nukta=True),
    "Bengali": Brahmic(0x980, 0x9E6, has_nukta=True),  # Assamese too
    # Subtle: its bindi alone; the tippi (U+0A70) is how Punjabi spells these words, and stays.
    "Gurmukhi": Brahmic(0xA00, 0xA66, has_nukta=True),
    "Gujarati": Brahmic(0xA80, 0xAE6, has_nukta=True),
    "Oriya": Brahmic(0xB00, 0xB66, has_nukta=True),
    "Tamil": Brahmic(0xB80, 0xBE6, has_anusvara=False),  # writes the nasal consonants always
    "Telugu": Brahmic(0xC00, 0xC66),
    "Kannada": Brahmic(0xC80, 0xCE6, has_nukta=True),
    "Malayalam": Brahmic(0xD00, 0xD66),
}
FIFTH_CASE_SCRIPTS = tuple(name for name, script in BRAHMIC.items() if script.has_anusvara)
NUKTA_SCRIPTS = tuple(name for name, script in BRAHMIC.items() if script.has_nukta)
DIGITS: Mapping[str, int] = {
    **{name: script.digits for name, script in BRAHMIC.items()},
    "Arabic": 0x660,  # Arabic-Indic
    "Arabic_Extended": 0x6F0,  # of Urdu, Persian, Sindhi and Kashmiri
    "Ol_Chiki": 0x1C50,
    "Meetei_Mayek": 0xABF0,
}
"""Zero of each kind of digits; the other nine follow."""

_BUILT_VOWELS = (
    "ऄ=अॆ आ=अा ऊ=उु ऍ=एॅ ऎ=एॆ ऐ=एे ऑ=अॉ,आॅ ऒ=अॊ,आॆ ओ=अो,आे औ=अौ,आै ॲ=अॅ "
    "আ=অা ৠ=ঋৃ "
    "ਆ=ਅਾ ਇ=ੲਿ ਈ=ੲੀ ਉ=ੳੁ ਊ=ੳੂ ਏ=ੲੇ ਐ=ਅੈ ਓ=ੳੋ ਔ=ਅੌ "
    "આ=અા ઍ=અૅ એ=અે ઐ=અૈ ઑ=અૉ,આૅ ઓ=અો,આે ઔ=અૌ,આૈ ૉ=ૅા "
    "ଆ=ଅା ଐ=ଏୗ ଔ=ଓୗ "
    "ఓ=ఒౕ ఔ=ఒౌ ో=ొౕ "
    "ಊ=ಉಾ ಔ=ಒೌ ೠ=ಋಾ "
    "ഈ=ഇൗ ഊ=ഉൗ ഐ=എെ ഓ=ഒാ ഔ=ഒൗ ൈ=െെ"
)
"""A vowel, and the sequences that look like it but must not be used."""

_CHILLUS = {"ൺ": "ണ്", "ൻ": "ന്", "ർ": "ര്", "ൽ": "ല്", "ൾ": "ള്", "ൿ": "ക്", "ৎ": "ত্"}
"""Chillus, and the letter that spelled each of them, before ZWJ, until Unicode 5.1."""

_JOINERS = "\u200c\u200d"
_PIPE_SCRIPTS = ("Devanagari", "Bengali", "Gurmukhi", "Oriya")  # that end sentences with a danda
_MORE_LETTERS = {"Devanagari": "\u0972-\u097f", "Bengali": "ৎৰৱ", "Oriya": "ୱ"}
_INVISIBLE = "\xad\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
_SPACES = "\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200C)))
_PUNCTUATION = {"“”„‟": '"', "‘’‚‛´": "'", "–—": "-", "…": "..."}
_VIRAMAS = "".join(script.at(_VIRAMA) for script in BRAHMIC.values()) + "\u0dca\uaaf6"


def fifth_case(scripts: Sequence[str]) -> list[Replacement]:
    """Anusvara before a stop becomes the nasal consonant of its varga: गंगा, गङ्गा."""
    steps = []
    for name in scripts:
        script = BRAHMIC[name]
        for stops, nasal in _vargas(script):
            pattern = f"{script.at(_ANUSVARA)}(?=[{stops}])"
            steps.append(regex_step(pattern, nasal + script.at(_VIRAMA), script.at(_ANUSVARA)))
    return steps


def anusvara(scripts: Sequence[str]) -> list[Replacement]:
    """A nasal consonant joined to a stop of its varga becomes anusvara: गङ्गा, गंगा."""
    steps = []
    for name in scripts:
        script = BRAHMIC[name]
        for stops, nasal in _vargas(script):
            pattern = f"{nasal}{script.at(_VIRAMA)}(?=[{stops}])"
            steps.append(regex_step(pattern, script.at(_ANUSVARA), nasal))
    return steps


def nukta(scripts: Sequence[str]) -> list[Replacement]:
    """Put a nukta directly after its letter, once, in the spelling of NFC."""
    steps = []
    for name in scripts:
        script = BRAHMIC[name]
        dot = script.at(_NUKTA)
        signs = f"[{script.at(_SIGNS[0])}-{script.at(_SIGNS[1])}]"
        letters = f"[{script.at(0x05)}-{script.at(0x39)}{dot}]"
        wholes = {
            chr(code): chr(int(parts[0], 16)) + dot
            for code in range(script.block, script.block + 0x80)
            if len(parts := unicodedata.decomposition(chr(code)).split()) == 2
            and int(parts[1], 16) == ord(dot)
        }
        steps += [string_step(whole, apart) for whole, apart in wholes.items()]
        steps += [
            regex_step(f"(?<={letters})(?={signs}+{dot})", dot, dot),  # before the vowel signs …
            regex_step(f"(?<={signs}){dot}+", "", dot),  # … and not after them
            regex_step(f"{dot}{{2,}}", dot, dot),
        ]
        steps += [  # NFC leaves most of them apart ("composition exclusions")
            string_step(apart, whole)
            for whole, apart in wholes.items()
            if unicodedata.normalize("NFC", apart) == whole
        ]
    return steps


def vowel_signs(scripts: Sequence[str]) -> list[Replacement]:
    """Replace vowels and vowel signs composed of parts by their single characters."""
    wanted = {BRAHMIC[name].block for name in scripts}
    steps = [
        string_step(apart, vowel)
        for vowel, _, sequences in (entry.partition("=") for entry in _BUILT_VOWELS.split())
        if ord(vowel) & ~0x7F in wanted
        for apart in sequences.split(",")
    ]
    for block in sorted(wanted):
        for code in range(block, block + 0x80):
            parts = unicodedata.decomposition(chr(code)).split()
            composed = unicodedata.normalize("NFC", unicodedata.normalize("NFD", chr(code)))
            is_sign = len(parts) == 2 and int(parts[1], 16) & 0x7F != _NUKTA
            if is_sign and composed == chr(code):
                steps.append(string_step("".join(chr(int(part, 16)) for part in parts), composed))
    return steps


def joiners(_: Sequence[str]) -> list[Replacement]:
    """Spell chillus by their own characters; keep ZWJ and ZWNJ only where they have an effect.

    That is after a virama, an Arabic letter or an emoji.
    """
    chillus = [string_step(f"{apart}\u200d", chillu) for chillu, apart in _CHILLUS.items()]
    idle = rf"(?<![{_VIRAMAS}\p{{Arabic}}\p{{So}}\p{{Sk}}\ufe0f])[{_JOINERS}]+"
    return [*chillus, regex_step(idle, "", _JOINERS)]


def no_joiners(_: Sequence[str]) -> list[Replacement]:
    """Remove every ZWJ and ZWNJ; Persian and Malayalam lose distinctions."""
    chillus = [string_step(f"{apart}\u200d", chillu) for chillu, apart in _CHILLUS.items()]
    return [*chillus, regex_step(f"[{_JOINERS}]+", "", _JOINERS)]


def ascii_digits(scripts: Sequence[str]) -> list[Replacement]:
    """The digits of these scripts as 0-9."""
    digits = ["".join(chr(DIGITS[name] + value) for name in scripts) for value in range(10)]
    return [regex_step(f"[{same}]", str(value), same) for value, same in enumerate(digits)]


def native_digits(scripts: Sequence[str]) -> list[Replacement]:
    """0-9 as the digits of one script."""
    if len(scripts) != 1:
        raise ValueError(
            "native-digits needs one script to write them in, such as native-digits:Devanagari; "
            f"there are {', '.join(DIGITS)}"
        )
    return [string_step(str(value), chr(DIGITS[scripts[0]] + value)) for value in range(10)]


def dandas(scripts: Sequence[str]) -> list[Replacement]:
    """Write a danda typed as "|" after a letter, or as its script's own character, as U+0964."""
    steps = []
    for name in scripts:
        script = BRAHMIC[name]
        after = f"[{script.at(0x00)}-{script.at(0x63)}{script.at(0x66)}-{script.at(0x7F)}]"
        if name != "Devanagari":  # whose dandas these are
            steps += [string_step(script.at(0x64), "।"), string_step(script.at(0x65), "॥")]
        if name == "Bengali":
            steps.append(string_step("\u09f7", "।"))  # currency numerator four looks like one
        if name in _PIPE_SCRIPTS:
            for before in (after, f"{after} "):
                steps.append(regex_step(rf"(?<={before})\|\|", "॥", "|"))
                steps.append(regex_step(rf"(?<={before})\|(?!\|)", "।", "|"))
    return steps


def visarga(scripts: Sequence[str]) -> list[Replacement]:
    """Write ":" between two letters of a word as visarga: दु:ख, दुःख."""
    steps = []
    for name in scripts:
        script = BRAHMIC[name]
        letters = f"{script.at(0x05)}-{script.at(0x39)}{script.at(0x58)}-{script.at(0x61)}"
        letters += _MORE_LETTERS.get(name, "")
        signs = "".join(map(script.at, (_NUKTA, *range(_SIGNS[0], _SIGNS[1] + 1), 0x62, 0x63)))
        steps.append(regex_step(f"(?<=[{letters}{signs}]):(?=[{letters}])", script.at(0x03), ":"))
    return steps


def spaces(_: Sequence[str]) -> list[Replacement]:
    """Write every space as U+0020; remove invisible marks (soft hyphen, BOM, direction)."""
    # Strings, not one class of them: `tokenizers` searches text for a string ten times as fast.
    return [string_step(one, "" if one in _INVISIBLE else " ") for one in _INVISIBLE + _SPACES]


def punctuation(_: Sequence[str]) -> list[Replacement]:
    """Write quotation marks, apostrophes, dashes and ellipses as ASCII."""
    return [string_step(one, plain) for same, plain in _PUNCTUATION.items() for one in same]


@dataclass(frozen=True, slots=True)
class Rule:
    """A normalization by name."""

    steps: Callable[[Sequence[str]], list[Replacement]]
    scripts: tuple[str, ...] = ()  # supported scripts; empty if it does not depend on one
    inverse: str | None = None  # the rule that undoes it, see `normalize`

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (self.steps.__doc__ or "").partition("\n")[0]


RULES: Mapping[str, Rule] = {
    "fifth-case": Rule(fifth_case, FIFTH_CASE_SCRIPTS, "anusvara"),
    "anusvara": Rule(anusvara, FIFTH_CASE_SCRIPTS, "fifth-case"),
    "nukta": Rule(nukta, NUKTA_SCRIPTS),
    "vowel-signs": Rule(vowel_signs, tuple(BRAHMIC)),
    "joiners": Rule(joiners),
    "no-joiners": Rule(no_joiners),
    "ascii-digits": Rule(ascii_digits, tuple(DIGITS), "native-digits"),
    "native-digits": Rule(native_digits, tuple(DIGITS), "ascii-digits"),
    "dandas": Rule(dandas, tuple(BRAHMIC)),
    "visarga": Rule(visarga, tuple(BRAHMIC)),
    "spaces": Rule(spaces),
    "punctuation": Rule(punctuation),
}


def _vargas(script: Brahmic) -> list[tuple[str, str]]:
    """(stops, as the inside of a character class; nasal) of the five vargas."""
    vargas = []
    for (first, last), more, nasal in zip(_STOPS, _NUKTA_STOPS, _NASALS, strict=True):
        stops = f"{script.at(first)}-{script.at(last)}"
        if script.has_nukta:
            stops += "".join(script.at(offset) for offset in more if _is_nukta(script, offset))
        vargas.append((stops, script.at(nasal)))
    return vargas


def _is_nukta(script: Brahmic, offset: int) -> bool:
    parts = unicodedata.decomposition(script.at(offset)).split()
    return len(parts) == 2 and int(parts[1], 16) == script.block + _NUKTA


def regex_step(pattern: str, content: str, any_of: str) -> Replacement:
    """Replace matches of a regex, all of which have one of the characters `any_of`."""
    return Replacement(pattern, content, True, frozenset(any_of))


def string_step(pattern: str, content: str) -> Replacement:
    """Replace a string."""
    return Replacement(pattern, content, False, frozenset(pattern[-1]))
