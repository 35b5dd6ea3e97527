"""Sentence ends are data: every terminal is of one kind, and the regex is the policy."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from tokenizers import Regex, pre_tokenizers

from vocabshift import _core
from vocabshift.text.patterns import parse_sentence_regex
from vocabshift.text.sentences import TERMINALS, SentencePolicy


def cut(policy: SentencePolicy, text: str) -> list[str]:
    """Pieces by the regex that is exported."""
    split = pre_tokenizers.Split(Regex(policy.regex), "merged_with_previous")
    return [piece for piece, _ in split.pre_tokenize_str(text)]


def test_terminals_are_punctuation_named_once() -> None:
    every = "".join(TERMINALS.values())
    assert len(every) == len(set(every))
    for character in every:
        assert unicodedata.category(character).startswith("P"), character
        assert 0 == _core.char_class(ord(character)), character


def test_scripts_are_named_as_unicode_names_them() -> None:
    for script in TERMINALS:
        assert regex.compile(rf"\p{{Script={script}}}")


def test_what_unicode_calls_a_terminal_of_these_scripts_is_one() -> None:
    """Of those that the method names: danda to CJK full stop."""
    for character in "!?…।॥۔؟꯫꫰꫱᱾᱿。！？":
        assert character in SentencePolicy().terminals


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("राम। सीता॥ ", ["राम।", " सीता॥", " "]),
        ("one. two", ["one.", " two"]),
        ("end.", ["end."]),
        ("3.14 a.b", ["3.14 a.b"]),
        ("www.example.org is", ["www.example.org is"]),
        ("what?! no…", ["what?!", " no…"]),
        (
            "etc...",
            [
                "etc...",
            ],
        ),
        ("猫。犬", ["猫。", "犬"]),
        ("no end", ["no end"]),
    ],
)
def test_default_policy(text: str, pieces: list[str]) -> None:
    assert pieces == cut(SentencePolicy(), text)


def test_a_period_may_be_none() -> None:
    policy = SentencePolicy(ascii_period="never")
    assert ["one. two!", " three."] == cut(policy, "one. two! three.")


@pytest.mark.parametrize(
    "policy",
    [
        SentencePolicy(),
        SentencePolicy(ascii_period="never"),
        SentencePolicy("।"),
        SentencePolicy("", "sentence"),
        SentencePolicy("!?", "never"),
    ],
)
def test_the_regex_can_be_read_back(policy: SentencePolicy) -> None:
    assert policy == parse_sentence_regex(policy.regex)


@pytest.mark.parametrize("other", [r"[a]+", r"\.", "[!]", r"[!]+|x", r"\s+", "[!]+|[?]+"])
def test_another_regex_is_no_policy(other: str) -> None:
    assert parse_sentence_regex(other) is None


def test_an_empty_policy_has_no_regex() -> None:
    assert "" == SentencePolicy("", "never").regex


@pytest.mark.parametrize(
    "bad", ["a", "क", "1", "५", " ", "\n", "\u00a0", ".", "]", "\\", "^", "-", "["]
)
def test_characters_that_cannot_be_terminals(bad: str) -> None:
    with pytest.raises(ValueError, match="cannot be a sentence terminal"):
        SentencePolicy(terminals="!" + bad)


def test_marks_cannot_be_terminals() -> None:
    """They belong to the letter before them; the core refuses them, and the policy says why."""
    with pytest.raises(ValueError, match="terminal"):
        SentencePolicy(terminals="\u093f")


def test_period_policy_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="ascii_period"):
        SentencePolicy(ascii_period="always")  # type: ignore[arg-type]


def test_the_core_refuses_letters_as_terminals() -> None:
    with pytest.raises(ValueError):
        _core.PreTokenizer(_core.Pattern.WALLS, "क")
