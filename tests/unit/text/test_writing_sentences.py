"""Sentence ends are data: every terminal is of one kind, and the regex is the policy."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from tokenizers import Regex, pre_tokenizers

from vocabshift import _core
from vocabshift.text.languages import SCHEDULED
from vocabshift.text.writing import TERMINALS, SentencePolicy, parse_sentence_regex


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


def test_what_unicode_calls_a_terminal_of_the_scheduled_languages_is_one() -> None:
    """Sentence_Terminal of every script they are written in, and those that the method names."""
    for script in {script for language in SCHEDULED for script in language.scripts}:
        terminal = regex.compile(rf"(?V1)[\p{{STerm}}&&\p{{scx={script}}}]")
        found = {chr(code) for code in range(0x20000) if terminal.match(chr(code))}
        assert found <= set(SentencePolicy().terminals), script
    assert set("!?…।॥۔؟꯫꫰꫱᱾᱿。！？") <= set(SentencePolicy().terminals)


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


@pytest.mark.parametrize(
    "text",
    [
        "3.14",
        "1.000.000,50",
        "https://example.org/a.b/c.html?x=1.5",
        "os.path.join(a.b)",
        "e.g.x",
        "U.S.A.F",
        "x = obj.method().field[0].name",
        "range(1..10)",
        "./run.sh",
        ".gitignore",
        "v1.2.3-rc.1",
        "क.ख",
    ],
)
def test_a_period_inside_decimals_urls_and_code_is_no_boundary(text: str) -> None:
    policy = SentencePolicy(terminals="")
    assert [text] == cut(policy, text)
    assert [f"{text}.", " Next"] == cut(policy, f"{text}. Next")


def test_every_period_may_be_a_boundary() -> None:
    policy = SentencePolicy(ascii_period="always")
    assert ["a.", "b...", " 3.", "14!.", " e.", "g.", " x"] == cut(policy, "a.b... 3.14!. e.g. x")
    assert [".", "x"] == cut(SentencePolicy("", "always"), ".x")


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
        SentencePolicy(ascii_period="always"),
        SentencePolicy("", "always"),
    ],
)
def test_the_regex_can_be_read_back(policy: SentencePolicy) -> None:
    assert policy == parse_sentence_regex(policy.regex)


@pytest.mark.parametrize(
    "other", [r"[a]+", r"\.", "[!]", r"[!]+|x", r"\s+", "[!]+|[?]+", r"[!.]+|\.(?=\s|$)", ""]
)
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


def test_period_policy_is_one_of_three() -> None:
    with pytest.raises(ValueError, match='"sentence", "always" or "never"'):
        SentencePolicy(ascii_period="sometimes")  # type: ignore[arg-type]


def test_the_core_refuses_letters_as_terminals() -> None:
    with pytest.raises(ValueError):
        _core.SentenceEnds("क", period=False)
