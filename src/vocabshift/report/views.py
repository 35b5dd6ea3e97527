"""What a report shows beside figures: real lines as tokenizers cut them, and vocabularies.

Values only. Knows nothing of tokenizers, HTML or terminals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vocabshift.report.pieces import TokenizedLine


@dataclass(frozen=True, slots=True)
class LanguageView:
    """Some lines of one language, as each tokenizer cuts them."""

    label: str  # of the corpus, as in Results ("ks_Arab")
    name: str  # for people ("Kashmiri"); the label itself where nothing better is known
    lines: Mapping[str, tuple[TokenizedLine, ...]]  # by subject


@dataclass(frozen=True, slots=True)
class VocabularyPart:
    """The tokens of a vocabulary that belong to one script or class."""

    name: str  # "Devanagari", "digits"
    tokens: int
    superwords: int = 0


@dataclass(frozen=True, slots=True)
class TokenViews:
    """All that a report shows of tokens."""

    languages: tuple[LanguageView, ...] = ()
    vocabularies: Mapping[str, tuple[VocabularyPart, ...]] = field(default_factory=dict)
    text: str = ""  # what the text is, for people
    notes: tuple[str, ...] = ()  # what a reader must know, one sentence each
