"""The core's scanners cut as the regex text that is exported, whatever the text."""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.pre_tokenize import pre_tokenizer
from strategies import DIGITS, LETTERS, SPACES, examples
from strategies import text as texts
from vocabshift.text.patterns import (
    CL100K,
    GPT2,
    NAMED,
    O200K,
    QWEN2,
    TEKKEN,
    Split,
    compile_pattern,
    sentence_split,
)
from vocabshift.text.regexes import join_words
from vocabshift.text.sentences import TERMINALS, SentencePolicy

POLICIES = {
    "no period": SentencePolicy(ascii_period="never"),
    "period alone": SentencePolicy(terminals=""),
    "two terminals": SentencePolicy("।!"),
}
WORDS = {"gpt2": GPT2, "cl100k": CL100K, "qwen2": QWEN2, "o200k": O200K, "tekken": TEKKEN}
PATTERNS = {
    **{name: pattern for name, pattern in NAMED.items() if name != "deepseek"},
    **{
        f"ist-stage2 then {name}": (*NAMED["ist-stage2"], Split(regex))
        for name, regex in (
            *(("gpt2", GPT2), ("cl100k", CL100K), ("qwen2", QWEN2)),
            *(("o200k", O200K), ("tekken", TEKKEN)),
        )
    },
    **{
        f"walls, {name}": (NAMED["superbpe-stage2"] + sentence_split(p))
        for name, p in POLICIES.items()
    },
    "o200k, sentences": NAMED["o200k"] + sentence_split(SentencePolicy()),
    **{f"{name}, words joined": (Split(join_words(regex)),) for name, regex in WORDS.items()},
    "tekken, words joined, sentences": (
        Split(join_words(TEKKEN)),
        *sentence_split(SentencePolicy()),
    ),
}


@functools.cache
def both(name: str) -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    """The regex, run by `tokenizers`, and the core's scanner."""
    scanner = compile_pattern(PATTERNS[name])
    assert scanner is not None
    return pre_tokenizer(PATTERNS[name]), scanner.split


def cuts_alike(name: str, text: str) -> None:
    regex, scanner = both(name)
    pieces = scanner(text)
    assert regex(text) == pieces
    assert text == "".join(pieces)


@pytest.mark.parametrize("name", PATTERNS)
@examples(250)
@given(text=texts)
def test_scanner_equals_regex(name: str, text: str) -> None:
    cuts_alike(name, text)


# One character of every kind that some alternative of some pattern tells apart.
KINDS = "aAſ'ǅʰक्1½ \t\n\r\u00a0/!.।😀"


@pytest.mark.parametrize("name", PATTERNS)
def test_all_short_texts(name: str) -> None:
    """Every text of three characters of every kind, many in one string between walls."""
    for start in KINDS:
        for pair in itertools.product(KINDS, repeat=2):
            cuts_alike(name, start + "".join(pair))


@pytest.mark.parametrize("name", PATTERNS)
@examples(150)
@given(text=st.text(KINDS + "sStTrReEvVlLmMdD", max_size=24))
def test_dense_texts(name: str, text: str) -> None:
    cuts_alike(name, text)


@pytest.mark.parametrize("name", PATTERNS)
def test_every_character_of_the_strategies(name: str) -> None:
    pool = "".join((*LETTERS, *DIGITS, *SPACES, *TERMINALS.values()))
    for character in sorted(set(pool)):
        for text in (character, f"a{character}b", f" {character} ", f"{character * 3}\n1"):
            cuts_alike(name, text)


@pytest.mark.parametrize("words", WORDS)
@examples(150)
@given(text=texts)
def test_joined_words_are_whole_words_over_single_spaces(words: str, text: str) -> None:
    """Each wall that goes stood before one space and a letter, behind a letter or a mark."""
    kept = {sum(map(len, pieces)) for pieces in prefixes(both(f"{words}, words joined")[1](text))}
    for before in prefixes(both(words)[1](text)):
        at = sum(map(len, before))
        behind, after = text[at - 1 : at], text[at : at + 2]
        joins = (
            unicodedata.category(behind)[0] in "LM"
            and behind != "\ufe0f"
            and after[:1] == " "
            and unicodedata.category(after[1:] or " ")[0] == "L"
        )
        assert (at in kept) != joins


def prefixes(pieces: list[str]) -> list[list[str]]:
    """The pieces before each wall."""
    return [pieces[:count] for count in range(1, len(pieces))]
