"""Words that are found 64 bytes at a time are those of the regex, wherever a block begins or ends.

The texts are longer than a block and dense in what the bits of a block cannot tell (contractions,
blanks before newlines, marks without a letter …), so that both ways and their seams are met.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference.pre_tokenize import pre_tokenizer
from repaired import repaired_pattern
from strategies import emoji_and_marks, examples
from strategies import text as texts
from vocabshift.text.patterns import NAMED, Split
from vocabshift.text.regexes import CL100K_POSSESSIVE, CL100K_TIKTOKEN
from vocabshift.text.scanners import compile_pattern

PATTERNS = {
    **{name: NAMED[name] for name in ("gpt2", "cl100k", "qwen2", "qwen35", "o200k", "kimi")},
    **{name: NAMED[name] for name in ("tekken", "indic", "deepseek", "smollm")},
    "tiktoken": (Split(CL100K_TIKTOKEN),),
    "possessive": (Split(CL100K_POSSESSIVE),),
    "deepseek's words": NAMED["deepseek"][2:],
    "matra": NAMED["matra"][:1],
    **{
        f"{name} repaired": repaired_pattern(NAMED[name])
        for name in ("gpt2", "cl100k", "qwen2", "qwen35", "tekken")
    },
}
ALPHABETS = (
    "abAB 1.\n",
    "aZ'streSLlD  \r\n/-",
    "कि्। १a\u200d\u200c\ufe0f\n",
    "Éé\u0301ʰªAa ǅſ'",
    "\u00a0\u3000 \t\n\v\f\r\u0085.a1/",
    "012९² a.",
    "😀漢—“”a தி\u0bcd'l",
    "漢カ〇⺀a1 !#é\n",
    "#aé!\u0301 \x00b\u200b1",
)


@functools.cache
def both(name: str) -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    scanner = compile_pattern(PATTERNS[name])
    assert scanner is not None
    return pre_tokenizer(PATTERNS[name]), scanner.split


@pytest.mark.parametrize("name", PATTERNS)
@examples(40)
@example(parts=["it's\ufe0f👩\u200d👩\u200d👧"])  # a mark after a contraction follows no letter
@given(parts=st.lists(st.one_of(texts, emoji_and_marks), min_size=4, max_size=12))
def test_long_texts(name: str, parts: list[str]) -> None:
    text = "".join(parts)
    expected, scanner = both(name)
    assert expected(text) == scanner(text)


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("name", PATTERNS)
def test_dense_texts_longer_than_a_block(name: str, alphabet: str) -> None:
    """Single characters, and runs of them, in any order."""
    expected, scanner = both(name)
    chance = random.Random(f"{name} {alphabet}")
    for longest_run in (1, 1, 3, 12) * 15:
        parts = (chance.choice(alphabet) * chance.randint(1, longest_run) for _ in range(300))
        text = "".join(parts)
        assert expected(text) == scanner(text)


@pytest.mark.parametrize("name", PATTERNS)
def test_every_place_in_a_block(name: str) -> None:
    """What is hard stands at each offset of a block, and the text ends at each offset behind it."""
    expected, scanner = both(name)
    for hard in ("don't ", " \n", "\n\n  ", "1234", "aB", "क्\u200dष", " ़", "  .", ";\n//", "É"):
        for before in range(66):
            text = "x" * before + hard + "the end, seventy bytes from here, is behind a word; " * 2
            assert expected(text) == scanner(text)
            assert expected(text[: 64 + before % 3]) == scanner(text[: 64 + before % 3])
