"""Sentence terminals by script, as data that a linguist may change.

The superword stage never joins words across a sentence end (IST, section 3). Sources: Unicode's
Sentence_Terminal property for the scripts in use; what an ASCII period means is a policy.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal, get_args

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
        """The terminals as the regex that the exported pre-tokenizer carries."""
        parts = [f"[{self.everywhere}]+"] if self.everywhere else []
        if self.ascii_period == "sentence":
            parts.append(_PERIOD)
        return "|".join(parts)


_PERIOD = r"\.(?=\s|$)"


def parse_sentence_regex(regex: str) -> SentencePolicy | None:
    """The policy whose regex this is, or None."""
    ascii_period: AsciiPeriod = "never"
    terminals = regex
    if regex.endswith(_PERIOD):
        ascii_period = "sentence"
        terminals = regex.removesuffix(_PERIOD).removesuffix("|")
    terminals = terminals[1:-2]
    if terminals.endswith("."):
        ascii_period = "always"
        terminals = terminals[:-1]
    try:
        policy = SentencePolicy(terminals, ascii_period)
    except ValueError:
        return None
    return policy if regex and policy.regex == regex else None
