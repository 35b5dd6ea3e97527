"""The rule of code-switched text, by hand and by its promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocabshift.errors import CorpusError
from vocabshift.evaluation.metrics.code_switching import MixedLine, parse_pair, switch_codes

WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30)


def test_by_hand() -> None:
    """Eight words against eight: two spans of four. The second line opens in the other language."""
    first, second = "a b c d e f g h", "A B C D E F G H"
    assert switch_codes([first] * 2, [second] * 2) == [
        MixedLine("a b c d E F G H", (7,), (4, 4)),
        MixedLine("A B C D e f g h", (7,), (4, 4)),
    ]


def test_spans_are_proportional() -> None:
    """Ten and six words: half of them over four is two spans; 16 and 8 words: three."""
    ten, six = "a b c d e f g h i j", "A B C D E F"
    assert switch_codes([ten], [six]) == [MixedLine("a b c d e D E F", (9,), (5, 3))]
    sixteen, eight = " ".join("abcdefghijklmnop"), " ".join("ABCDEFGH")
    (line,) = switch_codes([sixteen], [eight])
    assert line == MixedLine("a b c d e D E l m n o p", (9, 13), (10, 2))


def test_one_word_is_not_switched_and_blank_lines_are_left_out() -> None:
    """Parity goes by the number of the line, blank ones included."""
    assert switch_codes(["", "a", "a b"], [" ", "A B C", "A"]) == [
        MixedLine("A B C", (), (0, 3)),
        MixedLine("a b", (), (2, 0)),
    ]


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_promises(pairs: list[tuple[list[str], list[str]]]) -> None:
    """Words are whole and in their order; switches are the spaces where the case changes."""
    first = ["  ".join(words) for words, _ in pairs]
    second = ["\t".join(words).upper() for _, words in pairs]
    mixed = switch_codes(first, second)
    assert mixed == switch_codes(first, second)
    for line, (one, other) in zip(mixed, pairs, strict=True):
        words = line.text.split(" ")
        assert line.n_words == (sum(map(str.islower, words)), sum(map(str.isupper, words)))
        changes = [
            at
            for at, character in enumerate(line.text)
            if character == " " and line.text[at - 1].islower() != line.text[at + 1].islower()
        ]
        assert list(line.switches) == changes
        shorter = min(len(one), len(other))
        assert len(changes) + 1 == min(max(2, (len(one) + len(other) + 4) // 8), shorter)
        for own in (one, [word.upper() for word in other]):
            kept = [word for word in words if word.islower() == own[0].islower()]
            rest = iter(own)
            assert all(word in rest for word in kept)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (["a"], ["A", "B"], "hi has 1 lines and en has 2"),
        (["a b", ""], ["A B", "C"], "line 2 is blank in hi alone"),
        (["a b", "c"], ["A B", " "], "line 2 is blank in en alone"),
        ([], [], "nothing to mix"),
        ([" "], [""], "nothing to mix"),
    ],
)
def test_texts_that_are_not_parallel(first: list[str], second: list[str], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        switch_codes(first, second, names=("hi", "en"))


@pytest.mark.parametrize("label", ["hi", "hi+", "+en", "hi+hi", "hi+en+ta", ""])
def test_labels_that_are_no_pair(label: str) -> None:
    with pytest.raises(ValueError, match="no pair"):
        parse_pair(label)
    assert parse_pair("hi+en") == ("hi", "en")
