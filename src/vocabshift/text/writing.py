"""Units of writing: sentences by their terminals, orthographic syllables of India, graphemes.

Terminals of sentences are listed by script, as data that a linguist may change: the superword stage
never joins words across a sentence end (IST, section 3). Sources: Unicode's Sentence_Terminal
property for the scripts in use; what an ASCII period means is a policy.

A syllable is a letter with its marks (vowel signs, nukta, anusvara, virama), joiners, and the
letters that a virama joins to it (conjuncts). Owns which scripts are written so, what joins, and
the regex; all other text (digits, punctuation, other letters) is cut much as o200k cuts it.
Graphemes are extended grapheme clusters (UAX 29) by `regex`'s \\X, which follows rule GB9c: a
conjunct of Devanagari is one cluster. Which scripts have it depends on its Unicode tables.

Punctuation is what `tokenizers` takes for it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, get_args

from vocabshift import _core
from vocabshift.text.regexes import CONTRACTION, JOINERS, NOT_LETTERS, PREFIX

if TYPE_CHECKING:
    import numpy as np
    import regex
    from numpy.typing import NDArray

_PUNCTUATION = (
    "21-2f 3a-40 5b-60 7b-7e a1 a7 ab b6-b7 bb bf 37e 387 55a-55f 589-58a 5be 5c0 5c3 5c6 5f3-5f4 "
    "609-60a 60c-60d 61b 61e-61f 66a-66d 6d4 700-70d 7f7-7f9 830-83e 85e 964-965 970 af0 df4 e4f "
    "e5a-e5b f04-f12 f14 f3a-f3d f85 fd0-fd4 fd9-fda 104a-104f 10fb 1360-1368 1400 166d-166e "
    "169b-169c 16eb-16ed 1735-1736 17d4-17d6 17d8-17da 1800-180a 1944-1945 1a1e-1a1f 1aa0-1aa6 "
    "1aa8-1aad 1b5a-1b60 1bfc-1bff 1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 1cd3 2010-2027 2030-2043 "
    "2045-2051 2053-205e 207d-207e 208d-208e 2308-230b 2329-232a 2768-2775 27c5-27c6 27e6-27ef "
    "2983-2998 29d8-29db 29fc-29fd 2cf9-2cfc 2cfe-2cff 2d70 2e00-2e2e 2e30-2e42 3001-3003 "
    "3008-3011 3014-301f 3030 303d 30a0 30fb a4fe-a4ff a60d-a60f a673 a67e a6f2-a6f7 a874-a877 "
    "a8ce-a8cf a8f8-a8fa a8fc a92e-a92f a95f a9c1-a9cd a9de-a9df aa5c-aa5f aade-aadf aaf0-aaf1 "
    "abeb fd3e-fd3f fe10-fe19 fe30-fe52 fe54-fe61 fe63 fe68 fe6a-fe6b ff01-ff03 ff05-ff0a "
    "ff0c-ff0f ff1a-ff1b ff1f-ff20 ff3b-ff3d ff3f ff5b ff5d ff5f-ff65 10100-10102 1039f 103d0 "
    "1056f 10857 1091f 1093f 10a50-10a58 10a7f 10af0-10af6 10b39-10b3f 10b99-10b9c 11047-1104d "
    "110bb-110bc 110be-110c1 11140-11143 11174-11175 111c5-111c9 111cd 111db 111dd-111df "
    "11238-1123d 112a9 114c6 115c1-115d7 11641-11643 1173c-1173e 12470-12474 16a6e-16a6f 16af5 "
    "16b37-16b3b 16b44 1bc9f 1da87-1da8b"
)
PUNCTUATION_RANGES = tuple(
    (int(first, 16), int(last or first, 16))
    for first, _, last in (some.partition("-") for some in _PUNCTUATION.split())
)
"""First and last of the characters at which the pre-tokenizer Punctuation of `tokenizers` cuts:
ASCII's, and category P in the old version of Unicode that it was built with, so that neither
Python's tables nor the `\\p{P}` of a regex will do."""
_RUNS = (f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in PUNCTUATION_RANGES)
PUNCTUATION = f"[{''.join(_RUNS)}]"
"""One of them, as a regex."""

AsciiPeriod = Literal["sentence", "always", "never"]

TERMINALS: dict[str, str] = {
    "Latin": "!?…‼⁇⁈⁉",
    "Devanagari": "।॥",  # shared by most scripts of India: danda, double danda
    "Arabic": "۔؟؝؞",
    "Meetei_Mayek": "꯫꫰꫱",
    "Ol_Chiki": "᱾᱿",
    "Han": "。！？．｡",
    "Armenian": "։",
    "Ethiopic": "።፧፨",
    "Myanmar": "၊။",
    "Khmer": "។៕",
    "Tibetan": "།༎",
    "Sinhala": "෴",
    "Georgian": "჻",
}
"""Characters that end a sentence wherever they stand, by the script they are at home in.

Sentence_Terminal has nothing more for the scripts of the 22 scheduled languages. Added to it: the
ellipsis, the shads of Tibetan, and what ends sentences in Sinhala and Georgian. Left out of it: the
full stop (see ascii_period), what is rare or historical among the common marks (the interrobang,
U+2E2E and later), compatibility forms (U+2024, U+FE12-FE57), and scripts that are not in use here.
"""


@dataclass(frozen=True)
class SentencePolicy:
    """Which characters end a sentence, and whether an ASCII period may."""

    terminals: str = "".join(TERMINALS.values())
    ascii_period: AsciiPeriod = "sentence"
    """"sentence": a period before whitespace or the end of the text is a boundary (decimals, URLs
    and code keep theirs; abbreviations lose a superword, never correctness). "always": every period
    is one, as Matra has it. "never": none is."""

    def __post_init__(self) -> None:
        if self.ascii_period not in get_args(AsciiPeriod):
            raise ValueError(
                f'ascii_period is "sentence", "always" or "never", not {self.ascii_period!r}'
            )
        for character in self.terminals:
            if unicodedata.category(character)[0] in "LMNZC" or character in ".\\]^-[":
                raise ValueError(
                    f"{character!r} cannot be a sentence terminal: letters, marks, digits, spaces, "
                    r"controls and the characters . \ ] ^ - [ have other meanings "
                    '(for "." see ascii_period)'
                )

    @property
    def everywhere(self) -> str:
        """The characters that end a sentence whatever follows."""
        return self.terminals + ("." if self.ascii_period == "always" else "")

    @property
    def regex(self) -> str:
        """What ends a sentence: the step is a Split of it, merged with the previous."""
        parts = [f"[{self.everywhere}]+"] if self.everywhere else []
        if self.ascii_period == "sentence":
            parts.append(_PERIOD)
        return "|".join(parts)

    @property
    def sentence_regex(self) -> str:
        """A sentence with its end: an isolated Split of it cuts the same and matches all text.

        The text takes every period inside it, so that a period after it is an end.
        """
        ends = [f"[{self.everywhere}]+"] if self.everywhere else []
        text = f"[^{self.everywhere}]+"
        if self.ascii_period == "sentence":
            ends.append(r"\.")
            text = rf"(?:[^{self.everywhere}.]+|\.(?=\S))+"
        end = "|".join(ends)
        return f"{text}(?:{end})?|{end}" if end else ""


_PERIOD = r"\.(?=\s|$)"


def parse_sentence_regex(regex: str) -> SentencePolicy | None:
    """The policy whose `regex` or `sentence_regex` this is, or None."""
    terminals = regex
    ascii_period: AsciiPeriod = "never"
    if regex.endswith((_PERIOD, r"\.")):
        ascii_period = "sentence"
    start = regex.find("[")
    stop = regex.find("]", start)
    terminals = regex[start + 1 : stop].removeprefix("^") if 0 <= start < stop else ""
    if regex.startswith("(?:") or (ascii_period == "never" and terminals.endswith(".")):
        terminals = terminals.removesuffix(".")
        ascii_period = "sentence" if regex.startswith("(?:") else "always"
    try:
        policy = SentencePolicy(terminals, ascii_period)
    except ValueError:
        return None
    return policy if regex and regex in (policy.regex, policy.sentence_regex) else None


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
_LETTER = rf"(?:{'|'.join(CONJUNCTS)}|(?:(?=\p{{L}})[{_SCRIPTS}]))"
_LINKER = f"[{''.join(LINKERS.values())}]"
_OTHER = rf"[^\P{{L}}{_SCRIPTS}]"
_ZWJ = JOINERS[1]

SYLLABLES = (
    rf" ?{_LETTER}(?:[\p{{M}}{JOINERS}]*{_LINKER}{_ZWJ}?{_LETTER})*[\p{{M}}{JOINERS}]*|"
    rf"{PREFIX}{_OTHER}(?:{_OTHER}+|[\p{{M}}{JOINERS}]+)*{CONTRACTION}?|{NOT_LETTERS}"
)
"""A syllable after an optional space; or a run of letters of all other scripts, with marks and
joiners; or what else o200k knows. Meant as a step inside words: it cuts no English word that o200k
leaves whole. ZWJ after a linker asks for another form of the conjunct, and joins; ZWNJ asks for
no conjunct, and ends the syllable (so does GB9c). Any letter may be joined, where GB9c has
consonants only: অ্যা is one syllable."""


def syllable_rules() -> _core.SyllableRules:
    """The syllable rules in the form that the core takes."""
    return _core.SyllableRules(list(LINKERS), "".join(LINKERS.values()), list(CONJUNCTS))


def syllable_borders(text: str) -> NDArray[np.bool_]:
    """Whether a token may end in front of each character, and at the end, without cutting an
    orthographic syllable: (len(text) + 1,).

    Outside of syllables it may end anywhere, but never before a mark: every character keeps its
    accents. Lines may be joined by newlines, which change nothing inside of a line.
    """
    import numpy as np  # loaded only for borders, as `--help` needs none

    sizes = list(map(len, _scanner().split(text)))
    ends = np.cumsum(sizes, dtype=np.int64)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    if not sizes:
        return np.ones(1, dtype=np.bool_)
    found = np.flatnonzero(np.bincount(codes))
    bits, is_syllabic = np.zeros((2, int(found[-1]) + 1), dtype=np.uint8)
    bits[found] = [_core.char_class(code) for code in found.tolist()]
    is_syllabic[found] = [_core.script(code) in LINKERS for code in found.tolist()]
    is_syllabic[(bits & _LETTER_BITS) == 0] = 0

    first = ends - sizes
    first += codes[first] == ord(" ")  # a piece of a space alone has nothing else
    of_syllable = (first < ends) & (is_syllabic[codes[np.minimum(first, len(codes) - 1)]] > 0)
    steps = np.zeros(len(codes) + 2, dtype=np.int8)
    steps[first[of_syllable] + 1] += 1
    steps[ends[of_syllable]] -= 1
    may_end = np.asarray(np.cumsum(steps[:-1], dtype=np.int8) == 0)
    may_end[:-1] &= (bits[codes] & _MARK_BIT) == 0
    return may_end


_LETTER_BITS, _MARK_BIT = 7, 8  # of `_core.char_class`


@functools.cache
def _scanner() -> _core.PreTokenizer:
    return _core.PreTokenizer([syllable_rules()])


def grapheme_borders(text: str) -> list[int]:
    """Where extended grapheme clusters end, as character offsets: ascending, up to len(text)."""
    if text.isascii() and "\r" not in text:  # "\r\n" is the only cluster of ASCII
        return list(range(1, len(text) + 1))
    return list(accumulate(map(len, _cluster().findall(text))))


@functools.cache
def _cluster() -> regex.Pattern[str]:
    import regex  # loaded only for graphemes

    return regex.compile(r"\X")


def inner_letters(text: str) -> tuple[list[int], set[str], set[str]]:
    """Where letters and marks stand between two others, as character offsets, ascending; the
    different letters of the text; and the different marks."""
    kinds = _kinds()
    places: list[int] = []
    for run in _RUN.finditer(text.translate(kinds)):
        places += range(run.start() + 1, run.end() - 1)
    used = set(text)
    return places, used & kinds.seen["L"], used & kinds.seen["M"]


class _Kinds(dict[int, str]):
    """For `str.translate`: "L" for a letter, "M" for a mark, a space for all else; and which
    characters were so `seen`."""

    def __init__(self) -> None:
        import regex

        super().__init__()
        self.seen: dict[str, set[str]] = {"L": set(), "M": set(), " ": set()}
        self._find = regex.compile(r"(\p{L})|(\p{M})").match

    def __missing__(self, code: int) -> str:
        found = self._find(chr(code))
        kind = " LM"[found.lastindex] if found else " "
        self.seen[kind].add(chr(code))
        self[code] = kind
        return kind


_kinds = functools.cache(_Kinds)
_RUN = re.compile("[LM]{3,}")
