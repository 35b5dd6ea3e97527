"""Pre-tokenization by `tokenizers` itself: what the core's scanners are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tokenizers import Regex, pre_tokenizers

from vocabshift import _core
from vocabshift.text.patterns import Split

_BEHAVIORS = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}


def splits(pattern: Iterable[Split]) -> list[pre_tokenizers.PreTokenizer]:
    """The steps of a pattern, one Split each."""
    return [
        pre_tokenizers.Split(Regex(step.regex), _BEHAVIORS[step.behavior], step.invert)
        for step in pattern
    ]


def pre_tokenizer(pattern: Iterable[Split]) -> Callable[[str], list[str]]:
    """The function from a text to its pieces."""
    sequence = pre_tokenizers.Sequence(splits(pattern))
    return lambda text: [piece for piece, _ in sequence.pre_tokenize_str(text)]


def byte_level(pattern: Iterable[Split]) -> pre_tokenizers.PreTokenizer:
    """The steps of a pattern, then ByteLevel: what a byte-level tokenizer carries."""
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*splits(pattern), last])


_LETTER, _MARK = 1 | 2 | 4, 8  # bits of _core.char_class


def is_letter(character: str) -> bool:
    return bool(_core.char_class(ord(character)) & _LETTER)


def may_follow(character: str) -> bool:
    return character in "\u200c\u200d" or bool(_core.char_class(ord(character)) & _MARK)


def without_followers(text: str) -> str:
    """The text without the marks and joiners that stand behind a letter."""
    kept: list[str] = []
    for character in text:
        if not (kept and is_letter(kept[-1]) and may_follow(character)):
            kept.append(character)
    return "".join(kept)
