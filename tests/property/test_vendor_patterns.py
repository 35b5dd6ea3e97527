"""Vendors' own steps and spellings run in the core, and cut as `tokenizers` does with them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from reference.pre_tokenize import pre_tokenizer
from strategies import examples
from strategies import text as texts
from vocabshift.text.patterns import NAMED, Split, from_spec, text_splits
from vocabshift.text.regexes import (
    CL100K_POSSESSIVE,
    CL100K_TIKTOKEN,
    DIGITS,
    QWEN35,
    join_words,
    repair_regex,
)
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.splits import SPELLINGS

PATTERNS = {
    **{name: NAMED[name] for name in ("gpt2", "qwen35", "kimi", "deepseek", "smollm")},
    "deepseek's words": NAMED["deepseek"][2:],
    "cl100k of tiktoken": (Split(CL100K_TIKTOKEN),),
    "the same as tokenizers reads it": (Split(CL100K_POSSESSIVE),),
    "qwen35 repaired, words joined": (Split(join_words(repair_regex(QWEN35) or "")),),
    "runs of digits": (Split(DIGITS + "+"), *NAMED["qwen35"]),
}
# Han numerals, symbols and marks; Chinese beyond DeepSeek's ranges; controls and format characters
# before words; digits that regexes do not know; letters that fold into ASCII.
DENSE = st.text(
    "漢字々〇〡⺀\U00016ff0\ufa0e𠀀\u3099カー・한aAé\u0301ſ\u212a'sS12१\U00011de0\U00016ff4"
    " \t\n\r\u2028\u180e\x00\u200b\u200d\ufeff\u0378\ue000!/#—“€",
    max_size=24,
)
CONTRACTIONS = st.text("'sStTrReEvVlLmMdDſ 1\r\n\u00a0!", max_size=24)
ANY = st.one_of(texts, DENSE, CONTRACTIONS)

Cut = Callable[[str], list[str]]


@functools.cache
def both(name: str) -> tuple[Cut, Cut]:
    """The regexes, run by `tokenizers`, and the core's scanners."""
    scanner = compile_pattern(PATTERNS[name])
    assert scanner is not None
    return pre_tokenizer(PATTERNS[name]), scanner.split


@examples(600)
@given(text=st.one_of(DENSE, CONTRACTIONS))
def test_dense_texts(text: str) -> None:
    for name in PATTERNS:
        expected, scanner = both(name)
        assert expected(text) == scanner(text), name


@pytest.mark.parametrize("name", ["kimi", "deepseek's words", "qwen35"])
def test_every_code_point(name: str) -> None:
    expected, scanner = both(name)
    for text in every_code_point("b"):
        assert expected(text) == scanner(text)


def every_code_point(between: str) -> list[str]:
    """In many texts: the regex engine takes longer for a character of a long one."""
    scalars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    return [between.join(scalars[at : at + 2048]) for at in range(0, len(scalars), 2048)]


@functools.cache
def spelling(regex: str) -> tuple[Cut, Cut]:
    """A vendor's spelling run by `tokenizers`, and the scanner of the regex that it stands for."""
    scanner = compile_pattern([Split(regex).defined()])
    assert scanner is not None
    return pre_tokenizer([Split(regex)]), scanner.split


@examples(400)
@given(text=ANY)
def test_other_spellings_cut_alike(text: str) -> None:
    for regex in SPELLINGS:
        expected, scanner = spelling(regex)
        assert expected(text) == scanner(text), regex


@examples(60)
@given(text=ANY)
def test_matches_alone_are_all_of_a_text(text: str) -> None:
    """Files of some converters remove what is between the matches of a pattern: nothing."""
    for name in ("gpt2", "cl100k", "qwen35", "o200k"):
        (split,) = NAMED[name]
        removed = Split(split.regex, "Removed", invert=True)
        assert split == removed.defined()
        assert Split(split.regex, "Removed") == Split(split.regex, "Removed").defined()
        assert pre_tokenizer([removed])(text) == both_of(name)(text)


@functools.cache
def both_of(name: str) -> Cut:
    scanner = compile_pattern(NAMED[name])
    assert scanner is not None
    return scanner.split


@pytest.mark.parametrize("individual", [True, False])
def test_digits_are_those_of_the_pre_tokenizer_digits(*, individual: bool) -> None:
    pattern = text_splits({"type": "Digits", "individual_digits": individual})
    assert pattern is not None
    scanner = compile_pattern(pattern)
    assert scanner is not None
    digits = pre_tokenizers.Digits(individual_digits=individual)
    for text in ("12a 3", *every_code_point("")):
        assert [piece for piece, _ in digits.pre_tokenize_str(text)] == scanner.split(text)


_BEHAVIORS = {
    "Isolated": "isolated",
    "Contiguous": "contiguous",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
}


@pytest.mark.parametrize("behavior", _BEHAVIORS)
@examples(100)
@given(text=st.text("a \n1½", max_size=16))
def test_split_by_a_string(behavior: str, text: str) -> None:
    """As Gemma has it, with every behavior that keeps the text."""
    step = {"type": "Split", "pattern": {"String": " "}, "behavior": behavior, "invert": False}
    pattern = text_splits(step)
    assert pattern is not None
    scanner = compile_pattern(pattern)
    assert scanner is not None
    split = pre_tokenizers.Split(" ", _BEHAVIORS[behavior])
    assert [piece for piece, _ in split.pre_tokenize_str(text)] == scanner.split(text)


@examples(100)
@given(text=ANY)
def test_a_whole_specification(text: str) -> None:
    """SmolLM's: Digits, then ByteLevel with its own regex."""
    pattern = from_spec(
        {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            ],
        }
    )
    assert NAMED["smollm"] == pattern
    steps = [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ]
    pieces = pre_tokenizers.Sequence(steps).pre_tokenize_str(text)
    assert [text[start:end] for _, (start, end) in pieces] == both("smollm")[1](text)


def test_a_quoted_string_is_no_regex() -> None:
    step = {"type": "Split", "pattern": {"String": "a.[b]"}, "behavior": "Isolated"}
    pattern = text_splits(step)
    assert pattern is not None
    assert ["x", "a.[b]", "axb"] == pre_tokenizer(pattern)("xa.[b]axb")
