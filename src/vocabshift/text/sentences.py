"""Where sentences end: terminals by script, as data that a linguist may change.

The superword stage never joins words across a sentence end (IST, section 3). Sources: Unicode's
Sentence_Terminal property for the scripts in use; what an ASCII period means is a policy.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

AsciiPeriod = Literal["sentence", "never"]

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
"""Characters that end a sentence wherever they stand, by the script they are at home in."""


@dataclass(frozen=True)
class SentencePolicy:
    """Which characters end a sentence, and whether an ASCII period may."""

    terminals: str = "".join(TERMINALS.values())
    ascii_period: AsciiPeriod = "sentence"
    """"sentence": a period before whitespace or the end of the text is a wall (decimals, URLs and
    code keep theirs; abbreviations lose a superword, never correctness). "never": it is not."""

    def __post_init__(self) -> None:
        if self.ascii_period not in ("sentence", "never"):
            raise ValueError(f'ascii_period is "sentence" or "never", not {self.ascii_period!r}')
        for character in self.terminals:
            if unicodedata.category(character)[0] in "LMNZC" or character in ".\\]^-[":
                raise ValueError(
                    f"{character!r} cannot be a sentence terminal: letters, marks, digits, spaces, "
                    r"controls and the characters . \ ] ^ - [ have other meanings "
                    '(for "." see ascii_period)'
                )

    @property
    def regex(self) -> str:
        """The terminals as the regex that the exported pre-tokenizer carries."""
        parts = [f"[{self.terminals}]+"] if self.terminals else []
        if self.ascii_period == "sentence":
            parts.append(r"\.(?=\s|$)")
        return "|".join(parts)
