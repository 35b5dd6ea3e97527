"""The repair of a word pattern changes words with marks and joiners in them, and nothing else."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_text import eval_lines
from reference.pre_tokenize import is_letter, may_follow, pre_tokenizer, without_followers
from repaired import repaired_pattern
from strategies import emoji_and_marks, examples
from strategies import text as texts
from vocabshift.text.patterns import NAMED, Pattern, Split, get_pattern
from vocabshift.text.regexes import CL100K

OWN = {
    "digits first": (Split(r"\p{Nd}"), Split(r" ?\p{L}+|[^\p{L}]+")),
    "possessive": get_pattern(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "in a class": get_pattern(r"[\p{L}]+| ?[\p{M}\p{L}]++!|\s+"),
    "words go": (Split(r"\p{L}+", "Removed"),),
    "words stay": (Split(r" ?[\p{L}\p{M}]+", "Removed", True),),
    "merged": (Split(r"\p{L}+(?=[!.])", "MergedWithNext"),),
}
PATTERNS: dict[str, Pattern] = {
    **{n: NAMED[n] for n in ("gpt2", "cl100k", "qwen2", "o200k", "tekken", "deepseek", "matra")},
    **OWN,
}
UNMARKED = ("gpt2", "cl100k", "qwen2")  # of these, the named ones whose words have no marks


@functools.cache
def both(name: str) -> tuple[Callable[[str], list[str]], Callable[[str], list[str]]]:
    """The pattern and its repair, run by `tokenizers`."""
    repaired = repaired_pattern(PATTERNS[name])
    return pre_tokenizer(PATTERNS[name]), pre_tokenizer(repaired)


@examples(150)
@given(text=st.one_of(texts, emoji_and_marks))
def test_text_whose_letters_are_followed_by_neither_is_cut_as_before(text: str) -> None:
    text = without_followers(text)
    for name in PATTERNS:
        before, after = both(name)
        assert before(text) == after(text), name


@pytest.mark.parametrize("name", UNMARKED)
@examples(100)
@given(text=st.one_of(texts, st.text("aक\u093f्\u200d\u200c\ufe0f\u0301 !1漢❤\n", max_size=16)))
def test_no_word_is_cut_at_a_mark_or_joiner(name: str, text: str) -> None:
    """Every letter, mark or joiner behind a letter is in the piece of that letter."""
    text = text.replace("'", "")  # contractions are boundaries of their own
    borders = set(itertools.accumulate(map(len, both(name)[1](text))))
    in_word = False
    for at, character in enumerate(text):
        goes_on = in_word and (is_letter(character) or may_follow(character))
        assert not (goes_on and at in borders), at
        in_word = goes_on or is_letter(character)


@pytest.mark.parametrize("name", UNMARKED)
@examples(150)
@given(text=st.one_of(texts, emoji_and_marks))
def test_boundaries_only_go_where_a_mark_or_joiner_is_near(name: str, text: str) -> None:
    """The repair adds no boundary but right behind a letter's marks or joiners, where one used to
    belong to what follows (an apostrophe too, which may begin a contraction now)."""
    text = text.replace("'", "")
    before, after = (set(itertools.accumulate(map(len, cut(text)))) for cut in both(name))
    for at in after - before:
        assert may_follow(text[at - 1])


@pytest.mark.shared
@pytest.mark.parametrize("name", PATTERNS)
def test_english_german_estonian_and_code(name: str, shared_data: Path) -> None:
    """Lines from all over the text; the few with combining marks on letters are left out."""
    before, after = both(name)
    lines, n_marked = plain_lines(shared_data)
    assert len(lines) > 1_500
    assert n_marked < 0.001 * len(lines)
    for line in lines:
        assert before(line) == after(line)


@functools.cache
def plain_lines(shared_data: Path) -> tuple[list[str], int]:
    """Every third line of evaluation text in which no letter has a mark; how many have one."""
    lines = [
        line
        for file, of_file in eval_lines(shared_data).items()
        if any(part in file for part in ("/en", "/de", "/et", "code/"))
        for line in of_file[::3]
    ]
    plain = [line for line in lines if without_followers(line) == line]
    return plain, len(lines) - len(plain)


@pytest.mark.shared
def test_what_the_repair_gains_in_hindi_and_tamil(shared_data: Path) -> None:
    """Bytes per piece of cl100k: some 5 before, those of whole words after."""
    repaired = repaired_pattern(get_pattern(CL100K))
    for language, most_before, least_after in (("hi", 5.3, 11.5), ("ta", 5.9, 20.0)):
        lines = eval_lines(shared_data)[f"sib200-flores/{language}.txt"]
        n_bytes = sum(len(line.encode()) for line in lines)
        before, after = (
            sum(len(cut(line)) for line in lines)
            for cut in (pre_tokenizer(get_pattern(CL100K)), pre_tokenizer(repaired))
        )
        assert n_bytes / before < most_before
        assert n_bytes / after > least_after
