"""The core's scanners cut as the regex text that is exported, whatever the text."""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from real_text import eval_lines
from reference.pre_tokenize import pre_tokenizer
from repaired import repaired_pattern
from strategies import DIGITS, LETTERS, SPACES, examples
from strategies import text as texts
from vocabshift.text import regexes
from vocabshift.text.patterns import NAMED, Split, sentence_split
from vocabshift.text.regexes import (
    BOUNDARIES,
    CL100K,
    DIGIT_TRIPLES,
    GPT2,
    HAN,
    INDIC,
    INDIC_BOUNDARIES,
    MATRA,
    O200K,
    QWEN2,
    QWEN35,
    TEKKEN,
    join_words,
)
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.writing import CONJUNCTS, LINKERS, SYLLABLES, TERMINALS, SentencePolicy

POLICIES = {
    "no period": SentencePolicy(ascii_period="never"),
    "period alone": SentencePolicy(terminals=""),
    "every period": SentencePolicy(ascii_period="always"),
    "two terminals": SentencePolicy("।!"),
}
WORDS = {
    "gpt2": GPT2,
    "cl100k": CL100K,
    "qwen2": QWEN2,
    "qwen35": QWEN35,
    "o200k": O200K,
    "tekken": TEKKEN,
}
REPAIRED = {
    f"{name} repaired": repaired_pattern(NAMED[name])
    for name in ("gpt2", "cl100k", "qwen2", "qwen35", "tekken")
}
TIKTOKEN = {
    "cl100k of tiktoken": regexes.CL100K_TIKTOKEN,
    "cl100k of tiktoken, as tokenizers reads it": regexes.CL100K_POSSESSIVE,
}
CHARACTERS = tuple(
    Split(regex, behavior)
    for regex in (r"\p{N}", r"\p{N}{1,3}", regexes.DIGITS, "[\r\n]", " ")
    for behavior in ("Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext")
)
STEPS = (
    *(Split(r) for r in (GPT2, CL100K, QWEN2, O200K, TEKKEN, MATRA, INDIC, SYLLABLES)),
    *(Split(r) for r in (BOUNDARIES, INDIC_BOUNDARIES, DIGIT_TRIPLES, HAN)),
    *(Split(r) for r in (QWEN35, regexes.KIMI, *regexes.DEEPSEEK, *TIKTOKEN.values())),
    *CHARACTERS,
    *(step for pattern in REPAIRED.values() for step in pattern),
    *(step for policy in POLICIES.values() for step in sentence_split(policy)),
)
PATTERNS = {
    **NAMED,
    **REPAIRED,
    **{name: (Split(regex),) for name, regex in TIKTOKEN.items()},
    "deepseek's words": NAMED["deepseek"][2:],
    "runs of digits": (Split(regexes.DIGITS + "+"), *NAMED["qwen35"]),
    **{
        f"{outer}-stage2 then {inner}": (*NAMED[f"{outer}-stage2"], *NAMED[inner])
        for outer, inner in (("ist", "o200k"), ("indic", "indic"), ("matra", "matra"))
    },
    "indic-stage2, indic, syllables": (
        *NAMED["indic-stage2"],
        *NAMED["indic"],
        *NAMED["syllables"],
    ),
    **{
        f"boundaries, {name}": (NAMED["superbpe-stage2"] + sentence_split(p))
        for name, p in POLICIES.items()
    },
    "o200k, sentences": NAMED["o200k"] + sentence_split(SentencePolicy()),
    **{f"{name}, words joined": (Split(join_words(regex)),) for name, regex in WORDS.items()},
    **{
        f"{name}, words joined": (Split(join_words(split.regex)),)
        for name, (split,) in REPAIRED.items()
    },
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
    expected, scanner = both(name)
    pieces = scanner(text)
    assert expected(text) == pieces, name
    assert text == "".join(pieces), name


def all_cut_alike(text: str) -> None:
    """Making up a text costs much more than cutting it: each goes through every pattern."""
    for name in PATTERNS:
        cuts_alike(name, text)


@examples(500)
@given(text=texts)
def test_scanner_equals_regex(text: str) -> None:
    all_cut_alike(text)


@examples(40)
@given(text=texts)
def test_exported_steps_cut_alike(text: str) -> None:
    for name, pattern in PATTERNS.items():
        assert both(name)[1](text) == exported(pattern)(text), name


@functools.cache
def exported(pattern: tuple[Split, ...]) -> Callable[[str], list[str]]:
    """The spelling of a pattern in `tokenizer.json`, run by `tokenizers`."""
    return pre_tokenizer(step.exported() for step in pattern)


# One character of every kind that some alternative of some pattern tells apart.
KINDS = "aAſ'ǅʰक्1½ \t\n\r\u00a0/!.।😀漢"


@pytest.mark.parametrize("name", PATTERNS)
def test_all_short_texts(name: str) -> None:
    """Every text of three characters of every kind, many in one string between boundaries."""
    for start in KINDS:
        for pair in itertools.product(KINDS, repeat=2):
            cuts_alike(name, start + "".join(pair))


@examples(300)
@given(text=st.text(KINDS + "sStTrReEvVlLmMdD", max_size=24))
def test_dense_texts(text: str) -> None:
    all_cut_alike(text)


# What the patterns of Indian scripts tell apart besides: both joiners, a variation selector, Han.
INDIC_KINDS = "aAक्\u093f\u200d\u200c\ufe0f\u0301 !1漢❤"


@pytest.mark.parametrize(
    "name",
    ["indic", "indic-stage2", "syllables", "matra", "matra-stage2", "matra-left", *REPAIRED],
)
def test_all_short_texts_with_joiners(name: str) -> None:
    for start in itertools.product(INDIC_KINDS, repeat=2):
        for rest in itertools.product(INDIC_KINDS, repeat=2):
            cuts_alike(name, "".join(start + rest))


INDIC_TEXT = st.text(
    INDIC_KINDS
    + "".join(LINKERS.values())
    + "".join(CONJUNCTS)
    + "যরਪਰક્ષకಕകꯀᱚاʰǅEs'१२〇々カ।.\n🔥👩",
    max_size=24,
)


@examples(300)
@given(text=INDIC_TEXT)
def test_dense_texts_of_indian_scripts(text: str) -> None:
    all_cut_alike(text)


@examples(300)
@given(
    pattern=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6),
    text=st.one_of(texts, INDIC_TEXT),
)
def test_any_list_of_steps(pattern: list[Split], text: str) -> None:
    scanner = compile_pattern(pattern)
    assert scanner is not None
    assert pre_tokenizer(pattern)(text) == scanner.split(text)


@examples(400)
@given(text=st.one_of(texts, INDIC_TEXT), joiner=st.sampled_from(("", "\u200c", "\u200d")))
def test_without_joiners_the_indic_patterns_are_those_of_others(text: str, joiner: str) -> None:
    """A joiner at the start or behind what is no letter or mark changes nothing either."""
    text = joiner + regex.sub(r"(?<![^\p{L}\p{M}\u200c\u200d])[\u200c\u200d]", "", text)
    for ours, theirs in (("indic", "o200k"), ("indic-stage2", "ist-stage2")):
        assert both(theirs)[1](text) == both(ours)[1](text)


EMOJI = ("👩‍👩‍👧", "❤️‍🔥", "👁️‍🗨️", "🏴‍☠️", "🧑🏽‍⚕️", "#️⃣", "1️⃣", "🇮🇳", "👩🏽‍🤝‍👨🏿")


@examples(300)
@given(
    parts=st.lists(
        st.sampled_from((*EMOJI, "कि", "क्", "a", "AB", " ", "!", "।", "7", "\n", "ക", "ی")),
        max_size=8,
    )
)
def test_emoji_are_cut_as_before(parts: list[str]) -> None:
    text = "".join(parts)
    for ours, theirs in (("indic", "o200k"), ("indic-stage2", "ist-stage2")):
        assert both(theirs)[1](text) == both(ours)[1](text)


@examples(400)
@given(text=INDIC_TEXT)
def test_no_word_is_cut_at_a_joiner(text: str) -> None:
    """A letter without case, and the letters, marks and joiners behind it, are in one piece."""
    word = r"(?V1)\p{Lo}[[\p{Lo}\p{M}\u200c\u200d]--[\ufe0f]]*"
    for match in regex.finditer(word, text):
        for name in ("indic", "indic-stage2"):
            borders = set(itertools.accumulate(map(len, both(name)[1](text))))
            inside = range(match.start() + 1, match.end())
            cut = {at for at in inside if at in borders}
            assert not cut, (name, match[0])


@examples(200)
@given(text=st.text("0123456789०१२३௧௨١½Ⅳ𝟎 aक漢〇,\n", max_size=30))
def test_digits_are_grouped_from_the_right(text: str) -> None:
    pieces = both("matra")[1](text)
    groups = [g for run in regex.findall(r"(?:(?!\p{Han})\p{N})+", text) for g in threes(run)]
    assert groups == [piece for piece in pieces if regex.fullmatch(r"(?!\p{Han})\p{N}+", piece)]


def threes(run: str) -> list[str]:
    head = len(run) % 3
    return [*([run[:head]] if head else []), *(run[i : i + 3] for i in range(head, len(run), 3))]


def test_a_run_of_a_million_digits() -> None:
    """Linear in the core; the regex would take minutes."""
    run = "0123456789" * 100_000
    assert threes(run) == both("matra-stage2")[1](run)


@pytest.mark.parametrize("name", ["matra", "matra-stage2", "matra-left", "matra-left-stage2"])
@examples(100)
@given(text=st.text("漢字々〇𠀀\U000e0100\ufe00のカaक12 。!\n\u200d", max_size=16))
def test_no_piece_has_two_han_characters(name: str, text: str) -> None:
    pieces = both(name)[1](text)
    for piece in pieces:
        assert not regex.search(r"\p{Han}", piece) or regex.fullmatch(r"\p{Han}\p{M}*", piece)


@pytest.mark.parametrize("name", PATTERNS)
def test_every_character_of_the_strategies(name: str) -> None:
    pool = "".join((*LETTERS, *DIGITS, *SPACES, *TERMINALS.values()))
    for character in sorted(set(pool)):
        for text in (character, f"a{character}b", f" {character} ", f"{character * 3}\n1"):
            cuts_alike(name, text)


@pytest.mark.parametrize("step", [Split(HAN), Split(DIGIT_TRIPLES), Split(SYLLABLES)])
def test_every_code_point(step: Split) -> None:
    scanner = compile_pattern([step])
    assert scanner is not None
    expected = pre_tokenizer([step])
    scalars = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for at in range(0, len(scalars), 4096):
        text = "b".join(scalars[at : at + 4096])
        assert expected(text) == scanner.split(text)


@pytest.mark.shared
@pytest.mark.parametrize("name", PATTERNS)
def test_real_text_of_every_language(name: str, shared_data: Path) -> None:
    for file, lines in eval_lines(shared_data, 6_000).items():
        text = "\n".join(lines)
        regex_pieces, pieces = (split(text) for split in both(name))
        assert regex_pieces == pieces, file


@examples(250)
@given(text=texts)
def test_joined_words_are_whole_words_over_single_spaces(text: str) -> None:
    """Each boundary that goes stood before one space and a letter, behind a letter or a mark."""
    for words in (*WORDS, *REPAIRED):
        joins_words_alone(words, text)


def joins_words_alone(words: str, text: str) -> None:
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
        assert (at in kept) != joins, words


def prefixes(pieces: list[str]) -> list[list[str]]:
    """The pieces before each boundary."""
    return [pieces[:count] for count in range(1, len(pieces))]
