"""The automaton cuts as `tokenizers` with the same regex, whatever the regex and the text."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_text import eval_lines
from reference import automaton as reference
from reference.automaton import Tree
from reference.pre_tokenize import pre_tokenizer
from strategies import examples
from strategies import text as texts
from vocabshift import _core
from vocabshift.text import regexes
from vocabshift.text.patterns import NAMED
from vocabshift.text.regexes import join_words, repair_regex
from vocabshift.text.splits import Behavior, Split

TIKTOKEN_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
    r"\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = "|".join(
    (
        r"[\p{Han}]+",
        regexes.PREFIX + f"{_UPPER}*{_LOWER}+" + regexes.CONTRACTION + "?",
        regexes.PREFIX + f"{_UPPER}+{_LOWER}*" + regexes.CONTRACTION + "?",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    )
)
WORDS = (regexes.GPT2, regexes.CL100K, regexes.QWEN2, regexes.O200K, regexes.TEKKEN)
VENDORS = (
    *WORDS,
    *(step.regex for pattern in NAMED.values() for step in pattern if step.is_isolated),
    *(join_words(regex) for regex in WORDS),
    *filter(None, map(repair_regex, WORDS)),
    *(*regexes.DEEPSEEK, *regexes.DEEPSEEK_LLM, *regexes.DEEPSEEK_CODER, *regexes.FALCON),
    *(*regexes.SUPERBPE, *regexes.BLOOM, *regexes.SEED_CODER, *regexes.BAILING, *regexes.TINY_AYA),
    *(TIKTOKEN_CL100K, KIMI),
)


BEHAVIORS = ("Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


@functools.cache
def compiled(step: Split) -> _core.PreTokenizer:
    return _core.PreTokenizer([fresh(step)])


def fresh(step: Split) -> _core.Automaton:
    automaton = _core.Automaton.compile(step.regex, step.behavior, step.invert)
    assert automaton is not None, step
    return automaton


@functools.cache
def engine(step: Split) -> Callable[[str], list[str]]:
    return pre_tokenizer([step])


def cuts_alike(step: Split, text: str) -> None:
    assert engine(step)(text) == compiled(step).split(text), step


@examples(150)
@given(text=texts)
def test_every_vendors_pattern(text: str) -> None:
    for regex in VENDORS:
        cuts_alike(Split(regex), text)


KINDS = "aAſ'ǅʰक्\u200d1½ \t\n\r\u00a0/!.।漢😀"


@examples(300)
@given(text=st.text(KINDS + "sStTrReEvVlLmMdDkK", max_size=24))
def test_every_vendors_pattern_on_dense_text(text: str) -> None:
    for regex in VENDORS:
        cuts_alike(Split(regex), text)


@pytest.mark.shared
def test_every_vendors_pattern_on_real_text(shared_data: Path) -> None:
    for file, lines in eval_lines(shared_data, 400).items():
        text = "\n".join(lines)
        for regex in VENDORS:
            assert engine(Split(regex))(text) == compiled(Split(regex)).split(text), (file, regex)


# ---- regexes made up, over a few characters of each kind

ALPHABET = "abkKsſA1½२ \t\n'.!_क्漢é\u212a"


@functools.cache
def members(regex: str) -> frozenset[str]:
    """The characters that a class matches, by the engine."""
    of = engine(Split(f"(?:{regex})"))
    return frozenset(c for c in ALPHABET if of(f"{c}{c}") == [c, c])


CLASSES = (
    *("a", "b", "k", " ", "1", "क", "'", r"\n", r"\.", r"\u006b", r"\x61", r"\x{212a}"),
    *(".", r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\h", r"\O", r"\N", "(?m:.)"),
    *(r"\p{L}", r"\P{L}", r"\p{^N}", r"\p{Lu}", r"\p{M}", r"\p{P}", r"\p{Han}", r"\p{Word}"),
    *("[ab]", "[^ab]", "[a-k]", r"[^\s\p{L}\p{N}]", r"[\r\n\t ]", r"[\p{L}&&[^\p{Han}]]", r"[\w]"),
    *("[a-z&&[^b-j]&&[^s]]", "[^a-z&&[^k]]", "[]a]", "[^]a]", "[a-]", "[-a]", "[[:alpha:]]"),
    *(r"[^\W\d]", "[[:^space:]]", "[a[^b]]", "[[:punct:]]", r"[\p{^L}b]"),
    *("(?i:a)", "(?i:k)", "(?i:[st])", "(?i:[a-k])", "(?i:[^k])", r"(?i:\p{Lu})", "(?i:1)"),
    "(?i:[ks'])",
)
classes = st.sampled_from(CLASSES).map(lambda regex: ("class", regex, members(regex)))
REPEATS = ((0, 1), (0, None), (1, None), (1, 3), (0, 2), (2, 2), (2, None), (2, 4))
ANCHORS = ("^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B")


def may_be_empty(tree: Tree) -> bool:
    kind = tree[0]
    if kind == "sequence":
        return all(map(may_be_empty, tree[1]))
    if kind == "choice":
        return any(map(may_be_empty, tree[1]))
    if kind in ("repeat", "atomic"):
        return (kind == "repeat" and tree[2] == 0) or may_be_empty(tree[1])
    return bool(kind != "class")


@st.composite
def larger(draw: st.DrawFn, parts: st.SearchStrategy[Tree]) -> Tree:
    kind = draw(st.sampled_from(("sequence", "choice", "repeat", "repeat", "atomic", "look")))
    if kind in ("sequence", "choice"):
        return (kind, tuple(draw(st.lists(parts, min_size=2, max_size=3))))
    part = draw(parts)
    if kind == "atomic":
        return (kind, part)
    if kind == "look":
        return (kind, part, draw(st.booleans()))
    if may_be_empty(part):
        part = ("sequence", (draw(classes), part))
    least, most = draw(st.sampled_from(REPEATS))
    suffixes = ("", "?", "+") if least != most else ("", "+")
    return (kind, part, least, most, draw(st.sampled_from(suffixes)))


places = st.one_of(
    st.builds(lambda of, negated: ("behind", of, negated), classes, st.booleans()),
    st.sampled_from((("start",), ("end",))),
)
trees = st.recursive(st.one_of(classes, classes, classes, places), larger, max_leaves=8)


def spelt(tree: Tree) -> str:
    kind = tree[0]
    if kind == "class":
        return str(tree[1])
    if kind == "sequence":
        return "".join(f"(?:{spelt(p)})" if p[0] == "choice" else spelt(p) for p in tree[1])
    if kind == "choice":
        return "|".join(map(spelt, tree[1]))
    if kind == "atomic":
        return f"(?>{spelt(tree[1])})"
    if kind == "look":
        return f"(?{'!' if tree[2] else '='}{spelt(tree[1])})"
    if kind == "behind":
        return f"(?<{'!' if tree[2] else '='}{tree[1][1]})"
    if kind != "repeat":
        return {"start": r"\A", "end": r"\z"}[kind]
    _, part, least, most, suffix = tree
    one = spelt(part) if part[0] == "class" else f"(?:{spelt(part)})"
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((least, most))
    if short:
        return one + short + suffix
    times = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    return f"(?>{one}{times})" if suffix == "+" else one + times + suffix


few_characters = st.text(ALPHABET, max_size=10)


@examples(600)
@given(tree=trees, text=st.lists(few_characters, min_size=1, max_size=4))
def test_any_regex_of_the_subset(tree: Tree, text: list[str]) -> None:
    step = Split(spelt(tree))
    for own in text:
        expected = reference.split(tree, own)
        assert expected == engine(step)(own), step
        assert expected == compiled(step).split(own), step


@examples(300)
@given(
    parts=st.lists(st.one_of(trees.map(spelt), st.sampled_from(ANCHORS)), min_size=1, max_size=4),
    behavior=st.sampled_from(BEHAVIORS),
    invert=st.booleans(),
    text=few_characters,
)
def test_any_regex_with_anchors_and_any_behavior(
    parts: list[str], behavior: Behavior, invert: bool, text: str
) -> None:
    """Regexes that match nothing at all are refused where matches are merged."""
    step = Split("".join(f"(?:{part})" for part in parts), behavior, invert)
    automaton = _core.Automaton.compile(step.regex, behavior, invert)
    if automaton is not None:
        assert engine(step)(text) == _core.PreTokenizer([automaton]).split(text)
    else:
        assert behavior != "Isolated"


@examples(100)
@given(text=st.text("ab x1", max_size=12))
def test_matches_in_a_row_with_every_behavior(text: str) -> None:
    for regex in ("[ab]", "a|[^a]x", r"\p{L}{1,2}"):
        for behavior in BEHAVIORS:
            for invert in (False, True):
                cuts_alike(Split(regex, behavior, invert), text)


# ---- long texts, many states, threads


def test_blocks_of_a_long_text() -> None:
    """The first pass goes block by block: characters of every length lie across their ends."""
    for shift in range(4):
        text = "a" * shift + "कि 12345, don't ¡é!\n 漢😀  " * 1000
        for regex in (
            regexes.CL100K,
            regexes.O200K,
            regexes.DIGIT_TRIPLES,
            r"\Bi|\s(?=\S)|(?<=é)!",
        ):
            cuts_alike(Split(regex), text)
    for shift in range(2):  # what is looked for lies in the block before or after
        for regex in ("(?<=a)b", "a(?=b)"):
            cuts_alike(Split(regex), "c" * shift + "ab" * 17_000)
    for length in range(16_380, 16_390):
        for end in ("", "é", "漢", "😀"):
            cuts_alike(Split("a{1,3}b?|(?<!b)é"), "a" * length + end)


def test_a_lookahead_over_the_whole_text() -> None:
    """The engine would read to the end from each character on; here the time is linear."""
    text = "ab" * 500_000
    step = Split(r"a(?=[\s\S]*c)|b")
    assert ["a", "b"] * 500_000 == compiled(step).split(text)
    assert ["a", "b"] * 500_000 + ["c"] == compiled(step).split(text + "c")


def test_a_regex_on_which_backtracking_never_ends() -> None:
    text = "a" * 100_000
    assert [text] == compiled(Split(r"(?:a+)+$")).split(text)
    assert [text + "b"] == compiled(Split(r"(?:a+)+c|(?:a|a)*d")).split(text + "b")


def test_more_states_than_are_kept() -> None:
    """Each of the last 14 characters counts, so there are 2 ** 14 states: the tables are begun
    again, and what they say does not change."""
    chance = random.Random(0)
    regex = r"a(?=[ab]{13}a)|b"
    text = "".join(chance.choices("ab", k=120_000)) + "é"
    expected = [
        c if c == "b" or text[at + 14 : at + 15] == "a" else None for at, c in enumerate(text)
    ]
    pieces = compiled(Split(regex)).split(text)
    assert text == "".join(pieces)
    starts = {0, *itertools.accumulate(map(len, pieces))}
    wanted = {at + i for at, c in enumerate(expected) if c is not None for i in (0, 1)}
    assert starts == wanted | {0, len(text)}
    assert engine(Split(regex))(text[:5000]) == compiled(Split(regex)).split(text[:5000])


def test_threads_share_an_automaton() -> None:
    """Each begins with empty tables, which all of them fill at once."""
    chance = random.Random(1)
    lines = ["".join(chance.choices(KINDS + "sStTrRe", k=200)) for _ in range(400)]
    data = "\n".join(lines).encode()
    starts, ends = _core.line_spans(data)
    step = Split(TIKTOKEN_CL100K)
    one, *others = (
        _core.words_by_script(_core.PreTokenizer([fresh(step)]), data, starts, ends, threads)
        for threads in (1, 2, 8, 8)
    )
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ---- what is refused


@pytest.mark.parametrize(
    "regex",
    [
        *(r"(a)\1", r"\k<a>", r"(?<a>b)\g<a>", r"(?~a)", r"\X", r"\y", r"\K", r"\G", "(?#a)b"),
        *("a**", "(?:a?)+", "(?:a|)*", "(?:(?=a))*", "^*", r"(?:\b)+", "(?:)*"),
        *("(?<=ab)c", "(?<!a|bc)d", "(?<=a*)b", "(?<=^)a", "(?<=(?=a))b"),
        *("(?i:ß)", "(?i:ss)", "(?i:s)(?i:s)", "(?i:[s]s)", "(?i:ﬀ)", "(?i:f)(?i:i)", "(?i:'st)"),
        *("(?i:é)", r"(?i:[\p{L}])", r"(?i:[^\w])", "a(?i)b|c", "(?x: a)", "(?s:.)", "(?P<a>b)"),
        *("[a-z-9]", r"[\d-z]", "[a--]", "[&&a]", "[a&&]", "[a", "[]", "[b-a]", "[[:foo:]]"),
        *("[[:al pha:]]", r"[a-\d]", r"\p{foo}", r"\pL", r"\p{L", r"\xff", r"\101", r"\cA"),
        *(
            "(",
            ")",
            "a)",
            "(?",
            "(?<a",
            "*",
            "a|*",
            "{1}",
            "a{",
            "a{x}",
            "a{2,1}",
            "a{0}",
            "a{1001}",
        ),
        *("\\", "a\x00", "a{1000}{1000}", "(?:" * 70 + "a" + ")" * 70, "[" * 70 + "a" + "]" * 70),
        *("a" + "+" * 30, "a" + "?" * 100_000, "(" * 100_000, "[" * 100_000, "|".join("ab" * 9999)),
        *("|".join(map(chr, range(0x4E00, 0x4E00 + count))) for count in (300, 20_000)),
        "a" * 70_000,
    ],
)
def test_what_is_beyond_the_automaton_is_refused(regex: str) -> None:
    assert _core.Automaton.compile(regex) is None


def test_a_lone_surrogate_and_another_behavior_are_refused() -> None:
    assert _core.Automaton.compile("a", "Removed") is None
    assert _core.Automaton.compile(r"a|\b", "Contiguous") is None
    with pytest.raises(UnicodeEncodeError):
        _core.Automaton.compile("\ud800")


@pytest.mark.parametrize("text", ["", "a", "é", "\x00", "\U0010ffff" * 3])
def test_short_texts(text: str) -> None:
    for regex in ("", "a", "(?!a)", r"\z", "^", "$", r"\b", "[^a]", r"\x{10ffff}"):
        cuts_alike(Split(regex), text)


# Planes with characters, and the edges of the others, whose code points, two thirds of all, are
# alike.
PLANES = (*range(0x40000), *range(0xDF000, 0xF1000), *range(0x10F000, 0x110000))
BETWEEN = (*range(0x40000, 0xDF000), *range(0xF1000, 0x10F000))


@pytest.mark.slow
@pytest.mark.parametrize(
    "codes",
    [
        pytest.param(PLANES, id="planes"),
        pytest.param(BETWEEN, id="between", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("regex", CLASSES)
def test_every_code_point(regex: str, codes: tuple[int, ...]) -> None:
    scalars = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    for at in range(0, len(scalars), 4096):
        cuts_alike(Split(f"(?:{regex})+"), "".join(scalars[at : at + 4096]))
