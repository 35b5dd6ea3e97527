"""A word as the model of a tokenizer reads it: alone, and after a space.

Owns what normalizer and pre-tokenizer make of a word, and what keeps it from being one token.
Knows nothing of merges, scores or ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from vocabshift.extension.named_tokens import AnyKind
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.components import SPACE
from vocabshift.tokenizer.tokenizer import Tokenizer

BEFORE = "a"
"""The word that stands before the space."""

_SPACES = (" ", SPACE, byte_level.to_image(b" "))


@dataclass(frozen=True)
class Forms:
    """A word as the model reads it."""

    bare: str
    spaced: str
    space_apart: bool  # the space is a pre-token of its own
    obstacle: str = ""  # why neither can be one token

    def wanted(self, which: str) -> tuple[str, ...]:
        """The different strings that are to be tokens."""
        forms = {"both": (self.bare, self.spaced), "spaced": (self.spaced,), "bare": (self.bare,)}
        return tuple(dict.fromkeys(forms[which]))


def forms_of(tokenizer: AnyKind, word: str) -> Forms:
    """A word as the model reads it, alone and after a space."""
    backend = tokenizer.backend

    def parts(text: str) -> list[str]:
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        if backend.pre_tokenizer is None:
            return [text] if text else []
        return [part for part, _ in backend.pre_tokenizer.pre_tokenize_str(text)]

    inside = [token.content for token in tokenizer.added_tokens if token.content in word]
    if inside and word not in inside:
        return Forms("", "", space_apart=False, obstacle=f"the added token {inside[0]!r} is in it")
    alone, prefix = parts(word), "".join(parts(BEFORE))
    running = _after(parts(f"{BEFORE} {word}"), len(prefix))
    space_apart = len(running) > 1 and running[0] in _SPACES
    spaced = running[1:] if space_apart else running
    if not alone or not spaced:
        return Forms("", "", space_apart, "the normalizer leaves nothing of it")
    for pieces in (alone, spaced):
        if len(pieces) > 1:
            cut = " | ".join(map(_shown, pieces))
            return Forms("", "", space_apart, f"the pre-tokenizer cuts it: {cut}")
    longest = _longest(tokenizer)
    if len(alone[0]) > longest:
        return Forms("", "", space_apart, f"the model reads {longest} characters at most")
    return Forms(alone[0], spaced[0], space_apart)


def _after(parts: Sequence[str], n_characters: int) -> list[str]:
    """Pre-tokens without the characters in front; one that reaches across loses them."""
    ends = list(accumulate(map(len, parts)))
    starts = [0, *ends[:-1]]
    return [
        part[max(n_characters - start, 0) :]
        for part, start, end in zip(parts, starts, ends, strict=True)
        if end > n_characters
    ]


def _shown(part: str) -> str:
    try:
        return byte_level.to_bytes(part).decode()
    except (KeyError, UnicodeDecodeError):
        return part


def _longest(tokenizer: AnyKind) -> int:
    if isinstance(tokenizer, Tokenizer) or tokenizer.kind != "WordPiece":
        return 1 << 30
    return int(tokenizer.document["model"].get("max_input_chars_per_word", 100))
