"""ExtensionOptions: the options of `extend`, checked before any work starts.

Owns the options, their defaults, and the names that they accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

METHODS: Mapping[str, str] = {
    "continued": "train on from the tokenizer's own merges",
    "regen": "baseline: every split of a new token as a merge, after the old ones",
    "append": "baseline: the merges of a new tokenizer after the old ones",
    "prepend": "baseline: the merges of regen before the old ones, which changes old text",
    "add-tokens": "baseline: added tokens, cut out of the text before anything else",
}
"""Name of a method -> what it does, in one line."""

TIE_BREAKS: Mapping[str, str] = {
    "id": "the smaller ids",
    "lexicographic": "the smaller strings, as in the paper's toolkit",
}
"""Which of two pairs with equal counts is merged first -> the same, in one line."""

PRE_TOKENIZERS: Mapping[str, str] = {
    "kept": "as the tokenizer has it",
    "repaired": "marks and joiners may follow the letters of a word",
}
"""What becomes of the pre-tokenizer -> the same, in one line."""


@dataclass(frozen=True, kw_only=True)
class ExtensionOptions:
    """How to extend; `vocabshift.json` records it."""

    n_tokens: int
    """New tokens, those for missing characters not counted."""
    method: Annotated[str, METHODS] = "continued"
    """How new tokens are found. Baselines are reported with their cost."""
    tie_break: Annotated[str, TIE_BREAKS] = "id"
    """What decides between equal counts."""
    pre_tokenizer: Annotated[str, PRE_TOKENIZERS] = "kept"
    """What cuts words; "repaired" is for byte-level tokenizers only."""
    min_frequency: int = 1
    """A pair must occur this often to become a token."""
    max_token_bytes: int | None = None
    """Longest new token, in bytes (byte-level only)."""
    character_coverage: Annotated[float | None, "share"] = 0.9995
    """Share of the text's characters that the vocabulary is to hold; missing ones are added first,
    on top of `n_tokens`. None: none are. Byte-level vocabularies lack none."""
    complete_bytes: bool = False
    """First add tokens for the bytes that the vocabulary lacks and that UTF-8 can hold, on top of
    `n_tokens`."""
    fill_holes: bool = False
    """New tokens take ids that no token has (left by pruning, say) before those after all."""
    normalizer: Annotated[str | None, "STEP[+STEP…]"] = None
    """What the training text is brought into first, as in `train`; the tokenizer keeps its own."""
    sampling_alpha: Annotated[float | None, "share"] = None
    """Languages count in proportion to bytes ** alpha: 1 as they are, 0.3 nearly alike. None: as
    they are."""

    def __post_init__(self) -> None:
        _check_known("method", self.method, METHODS)
        _check_known("pre_tokenizer", self.pre_tokenizer, PRE_TOKENIZERS)
        check_tie_break(self.tie_break)
        for name in ("n_tokens", "min_frequency", "max_token_bytes"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or not 1 <= value < 1 << 62):
                raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
        if self.fill_holes and self.method != "continued":
            raise ValueError("fill_holes is for the method continued; baselines take new ids")

    def without_characters(self) -> ExtensionOptions:
        """Return the same options without added characters."""
        return replace(self, character_coverage=None)


def check_tie_break(tie_break: str) -> None:
    """Raise ValueError for an order that does not exist."""
    _check_known("tie_break", tie_break, TIE_BREAKS)


def _check_known(name: str, value: str, known: Mapping[str, str]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; give one of {tuple(known)}")
