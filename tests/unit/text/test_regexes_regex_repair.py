"""Which words of a regex are rewritten, and how."""

from __future__ import annotations

import pytest
from tokenizers import Regex

from repaired import repaired_pattern
from vocabshift.text import patterns, regexes
from vocabshift.text.patterns import Split
from vocabshift.text.regexes import repair_regex
from vocabshift.text.scanners import compile_pattern

WORD = "\\p{L}[\\p{L}\\p{M}\u200c\u200d]*"
MARKED = rf"\p{{M}}*{WORD}|\p{{M}}+"


@pytest.mark.parametrize(
    ("regex", "repaired"),
    [
        (r"\p{L}+", WORD),
        (r" ?\p{L}+|x", rf" ?{WORD}|x"),
        (r"[\p{L}]+", WORD),
        (r"\p{L}++", rf"{WORD}+"),
        (r"[\p{L}\p{M}]+", rf"(?:{MARKED})"),
        (r"[\p{M}\p{L}]+!", rf"(?:{MARKED})!"),
        (r"[\p{L}\p{M}]++", rf"(?>{MARKED})"),
        (r"\\\p{L}+", rf"\\{WORD}"),
        (r"[^[a]\p{L}]?\p{L}+[]x]\p{L}+", rf"[^[a]\p{{L}}]?{WORD}[]x]{WORD}"),
        (r"\[\p{L}+\]", rf"\[{WORD}\]"),
    ],
)
def test_words_are_rewritten(regex: str, repaired: str) -> None:
    assert repaired == repair_regex(regex)
    Regex(repaired)  # tokenizers accepts it
    assert repair_regex(repaired) is None


@pytest.mark.parametrize(
    "regex",
    [
        r"\p{L}",
        r"\p{L}*",
        r"\p{L}+?",
        r"\\p{L}+",  # a backslash, and then text
        r"[\p{L}\p{N}]+",
        r"[^\p{L}]+",
        r"[x\p{L}+]",
        r"\P{L}+",
        r"\p{Lu}+",
        r"\s+|\w+",
        r"[abc",
        "[a\\",
        "",
    ],
)
def test_what_is_no_word_stays(regex: str) -> None:
    assert repair_regex(regex) is None


def test_the_published_rewrite_of_cl100k() -> None:
    assert (
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?{WORD}|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ) == repair_regex(regexes.CL100K)


def test_o200k_becomes_indic() -> None:
    assert patterns.NAMED["indic"] == repaired_pattern(patterns.NAMED["o200k"])


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt2", "कि \u0301x", ["कि", " \u0301", "x"]),
        ("cl100k", "कि \u0301x", ["कि", " \u0301", "x"]),
        ("qwen2", "می\u200cخواهم 12", ["می\u200cخواهم", " ", "1", "2"]),
        ("o200k", "അവന്\u200d's!", ["അവന്\u200d's", "!"]),
        ("tekken", "അവന്\u200d's!", ["അവന്\u200d", "'s", "!"]),
        ("deepseek", "അവന്\u200dx \ufe0f\u200d!", ["അവന്\u200dx", " \ufe0f", "\u200d", "!"]),
    ],
)
def test_words_with_marks_are_whole(name: str, text: str, pieces: list[str]) -> None:
    repaired = repaired_pattern(patterns.NAMED[name])
    assert pieces == patterns.splitter(repaired)(text)


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "qwen2", "o200k", "tekken"])
def test_repaired_patterns_have_scanners(name: str) -> None:
    repaired = repaired_pattern(patterns.NAMED[name])
    assert compile_pattern(repaired) is not None
    joined = (Split(regexes.join_words(repaired[0].regex)),)
    assert compile_pattern(joined) is not None
