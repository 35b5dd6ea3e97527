"""Small changes of a line: what they may touch, and what they leave."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.evaluation.metrics.robustness import CHANGES, TYPOS, TypoKind, typo

LINES = st.text(st.sampled_from("abcdé क्षिमनकट ல்\t\0🙂\u0301"), max_size=16)
# At least one word is long enough for each kind of typo, whatever is around it.
WORDS = ("abcd", "éabc", "क्षिक", "தமிழ்", "e\u0301a\u0301b\u0301")
WITH_A_PLACE = st.builds(
    lambda before, word, after: before + word + after,
    *(LINES, st.sampled_from(WORDS), LINES),
)


@pytest.mark.parametrize("kind", TYPOS)
@given(line=WITH_A_PLACE)
def test_a_typo_stays_in_its_word(kind: TypoKind, line: str) -> None:
    """What stands before and behind the word is as it was; the word's first character stays."""
    made = typo(line, kind)
    assert made is not None
    assert made == typo(line, kind)
    assert made.text != line
    assert made.text[: made.begin + 1] == line[: made.begin + 1]
    assert made.text[made.end_in_text :] == line[made.end :]
    word, mistyped = line[made.begin : made.end], made.text[made.begin : made.end_in_text]
    assert word in line.split()
    assert len(mistyped) == len(word) - (kind == "delete")
    if kind == "swap":
        assert sorted(mistyped) == sorted(word)
    if kind == "replace":
        assert sum(old != new for old, new in zip(word, mistyped, strict=True)) == 1
        assert set(mistyped) <= set(line)


@pytest.mark.parametrize("line", ["", "a", "ab cd", "1234 5678", "\0\0\0", "\u0301\u0301", "x y z"])
def test_a_line_without_a_place_for_it(line: str) -> None:
    assert [typo(line, kind) for kind in TYPOS] == [None] * 3


def test_by_hand() -> None:
    """One inner letter alone can be meant; another letter of the line takes its place."""
    assert getattr(typo("- abc 12", "delete"), "text", "") == "- ac 12"
    assert getattr(typo("- abc 12", "swap"), "text", "") == "- acb 12"
    assert getattr(typo("- abc 12", "replace"), "text", "") in {"- aac 12", "- acc 12"}
    assert typo("- abb 12", "swap") is None
    assert typo("- bbb 12", "replace") is None


def test_a_mark_takes_the_place_of_a_mark() -> None:
    """The marks of the line can only become each other, letters letters."""
    line = "किसी कीमत"
    made = typo(line, "replace")
    assert made is not None
    shapes = [
        regex.sub(r"\p{M}", "M", regex.sub(r"\p{L}", "L", text)) for text in (line, made.text)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("kind", TYPOS)
def test_a_long_word_takes_no_longer_than_its_length(kind: TypoKind) -> None:
    """A quadratic rule would take minutes; the only place for it is at the far end."""
    line = "क" * 300_000 + "खग " + "ab " * 100_000
    made = typo(line, kind)
    assert made is not None
    assert (made.begin, made.end) == (0, 300_002)


@given(LINES)
def test_changes(line: str) -> None:
    """Normal forms are Unicode's; spaces and case what they are called."""
    made = {name: change(line) for name, change in CHANGES.items()}
    assert made["nfc"] == unicodedata.normalize("NFC", line)
    assert made["nfd"] == unicodedata.normalize("NFD", line)
    assert made["leading_space"] == f" {line}"
    assert made["trailing_space"] == f"{line} "
    assert made["lowercase"] == line.lower()
    assert made["uppercase"] == line.upper()
