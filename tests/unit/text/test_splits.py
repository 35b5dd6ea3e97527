"""The spelling of steps in `tokenizer.json`: total, literal, and read back, earlier ones too."""

from __future__ import annotations

import json

import pytest
from tokenizers import Regex, pre_tokenizers

from repaired import repaired_pattern
from vocabshift.text import patterns, regexes, splits
from vocabshift.text.patterns import NAMED, from_spec, get_pattern, to_spec
from vocabshift.text.regexes import join_words
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.splits import Split, definition, total, uncovered
from vocabshift.text.writing import LINKERS, SentencePolicy

TEXT = (
    "The cat's 12345 mats,\n\n  राम का घर। if (a != b)\t{ x.y }  \u00a0ʰǅ ३४५ 👩\u200d👩\u200d👧"
    " क्\u200dष می\u200cخ ...\r\n"
)
REPAIRED = {name: repaired_pattern(NAMED[name]) for name in ("gpt2", "qwen2", "tekken", "deepseek")}
ALL = {
    **NAMED,
    **{f"{name} repaired": pattern for name, pattern in REPAIRED.items()},
    "words joined": (Split(join_words(regexes.O200K)), *NAMED["ist-stage2"][1:]),
    "period": (Split(SentencePolicy("", "sentence").regex, "MergedWithPrevious"),),
    "every period": (Split(SentencePolicy("!", "always").regex, "MergedWithPrevious"),),
    "no period": (Split(SentencePolicy("!", "never").regex, "MergedWithPrevious"),),
    "own": get_pattern(r"x+y"),
}


def matches_alone(pattern: tuple[Split, ...], text: str) -> list[str]:
    """The pre-tokens of a program that keeps matches and drops what is between them."""
    parts = [text]
    for step in pattern:
        matches = pre_tokenizers.Split(Regex(step.regex), "removed", invert=True)
        parts = [match for part in parts for match, _ in matches.pre_tokenize_str(part)]
    return parts


@pytest.mark.parametrize("name", ALL)
def test_matches_alone_are_the_pre_tokens(name: str) -> None:
    exported = tuple(step.exported() for step in ALL[name])
    for text in (TEXT, TEXT.strip(), "", " ", "\x00\x01a", "।॥", "...", "xxy"):
        assert patterns.splitter(ALL[name])(text) == matches_alone(exported, text)


@pytest.mark.parametrize("name", ALL)
def test_exported_steps_are_isolated_literal_and_read_back(name: str) -> None:
    exported = tuple(step.exported() for step in ALL[name])
    assert ALL[name] == tuple(step.defined() for step in exported)
    for step in exported:
        assert step.is_isolated
        assert "" == uncovered(step.regex)
        assert "\\u" not in step.regex
        assert "&&" not in step.regex
        assert step == step.exported()


def test_named_patterns_are_exported_without_trying_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying a regex loads `tokenizers`, and every training would wait for that."""
    monkeypatch.setattr(splits, "_cut", None)
    total.cache_clear()
    for name, pattern in ALL.items():
        if not name.startswith(("deepseek", "own")):
            to_spec(pattern)


@pytest.mark.parametrize("regex", splits._TOTAL)
def test_known_total_forms_are_total_and_cut_the_same(regex: str) -> None:
    assert "" == splits.uncovered(total(regex))
    assert splits._cut(regex, "isolated") == splits._cut(total(regex), "isolated")


def test_boundaries_have_no_lookahead_for_every_character() -> None:
    letters, punctuation = r"[\p{L}\p{M}]", r"[^\s\p{L}\p{N}\p{M}]"
    assert (
        rf"(?: ?{letters}+| ?{punctuation}(?!{punctuation})| (?=\p{{N}})|[^\S\r\n ](?=\S))+|"
        + regexes.BOUNDARIES
    ) == total(regexes.BOUNDARIES)


@pytest.mark.parametrize(
    ("regex", "form"),
    [
        (r"\p{N}{1,3}", r"\p{N}{1,3}|[^\p{N}]+"),
        (r"[^\]x]+", r"[^\]x]+|[\]x]+"),
        (r"\p{N}{1,3}|[^\p{N}]+", r"\p{N}{1,3}|[^\p{N}]+"),
        ("ab", r"ab|(?:(?!ab)[\s\S])+"),
        (r"(?=\d)", r"[\s\S]+?(?=(?=\d))|[\s\S]+"),
        (r"[\s\S]", r"[\s\S]"),
        (r"\p{N}*", r"\p{N}*"),  # what would match all of it cuts between digits
        (r"a\u200cb|[\s\S]", "a\u200cb|[\\s\\S]"),
        (r"\\u200c|[\s\S]", r"\\u200c|[\s\S]"),
        (r"\u005d|[\s\S]", r"\u005d|[\s\S]"),
    ],
)
def test_total_forms(regex: str, form: str) -> None:
    assert form == total(regex)
    assert definition(regex) == definition(form)


@pytest.mark.parametrize(
    ("regex", "lost"), [("[^b]", "b"), (r"[^\x00]", "\x00"), (r"[\s\S]", ""), ("[^语ー𐀀]", "ー")]
)
def test_uncovered_text(regex: str, lost: str) -> None:
    assert lost == uncovered(regex)


def test_what_has_no_total_form_stays() -> None:
    """Removed and inverted steps are what they are: they mean to drop or to keep gaps."""
    for own in (Split("a", "Removed"), Split("a", "Isolated", True), Split("a", "MergedWithNext")):
        assert own == own.exported() == own.defined()


SCRIPTS = "".join(rf"\p{{{script}}}" for script in LINKERS)
LETTER = rf"(?:க்ஷ|ஸ்ரீ|ஶ்ரீ|[\p{{L}}&&[{SCRIPTS}]])"
OTHER = rf"[\p{{L}}&&[^{SCRIPTS}]]"
LINKER = "[" + "".join(rf"\u{ord(sign):04x}" for sign in "".join(LINKERS.values())) + "]"
JOINED = r"(?:(?<=[\p{L}\p{M}&&[^\ufe0f]])(?= \p{L})"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}\u200c\u200d", r"\p{Ll}\p{Lm}\p{Lo}\p{M}\u200c\u200d"
PREFIX, CONTRACTION = r"[^\r\n\p{L}\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
NOT_LETTERS = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = (
    rf"{PREFIX}\p{{M}}*(?=\p{{L}})[{UPPER}]*[{LOWER}]+%s|{PREFIX}\p{{M}}+%s|"
    rf"{PREFIX}[\p{{Lu}}\p{{Lt}}]+%s"
)
EARLIER = {
    "indic": WORDS.replace("%s", CONTRACTION) + f"|{NOT_LETTERS}",
    "indic-stage2": r"\p{N}{1,3}| ?(?:(?<![\p{L}\p{M}\u200c\u200d&&[^\ufe0f]])|(?![\u200c\u200d]))"
    r"[^\s\p{L}\p{N}\p{M}]{2,}[\r\n/]*|\s*[\r\n]+|\s+(?!\S)",
    "syllables": rf" ?{LETTER}(?:[\p{{M}}\u200c\u200d]*{LINKER}\u200d?{LETTER})*"
    r"[\p{M}\u200c\u200d]*|"
    rf"{PREFIX}{OTHER}[\p{{M}}\u200c\u200d{OTHER}]*{CONTRACTION}|{NOT_LETTERS}",
    "gpt2 repaired": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}[\p{L}\p{M}\u200c\u200d]*| ?\p{N}+|"
    r" ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "deepseek repaired": r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
    "[^\r\n\\p{L}\\p{P}\\p{S}]?(?:\\p{M}*\\p{L}[\\p{L}\\p{M}\\u200c\\u200d]*|\\p{M}+)|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    "tekken repaired": WORDS.replace("%s", "")
    + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "ist-stage2": r"\p{N}{1,3}| ?[^\s\p{L}\p{N}\p{M}]{2,}[\r\n/]*|\s*[\r\n]+|\s+(?!\S)",
    "matra": r"\p{Han}\p{M}*",
}
"""First steps (the last of "deepseek repaired"), letter for letter as files have them that were
written before there were total forms."""


@pytest.mark.parametrize("name", EARLIER)
def test_earlier_spellings_are_read(name: str) -> None:
    place = -1 if name == "deepseek repaired" else 0
    wanted = ALL[name][place]
    spec = to_spec(())
    step = {"type": "Split", "pattern": {"Regex": EARLIER[name]}, "behavior": "Isolated"}
    spec["pretokenizers"].insert(0, {**step, "invert": False})
    read = from_spec(json.loads(json.dumps(spec)))
    assert (wanted,) == read
    assert compile_pattern((wanted,)) is not None
    assert (wanted,) == get_pattern(EARLIER[name])
    earlier = pre_tokenizers.Split(Regex(EARLIER[name]), "isolated")
    pieces = [piece for piece, _ in earlier.pre_tokenize_str(TEXT)]
    assert pieces == patterns.splitter((wanted,))(TEXT)


def test_earlier_joined_words_are_read() -> None:
    words = regexes.GPT2
    wanted = Split(join_words(words))
    assert wanted == Split(f"(?:{words}){JOINED}(?:{words}))*").defined()
    assert compile_pattern((wanted,)) is not None


def test_earlier_digit_triples_and_sentences_are_what_they_were() -> None:
    earlier = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))"
    assert Split(earlier) == Split(earlier).defined() == NAMED["matra"][1]
    sentences = Split(r"[!।]+|\.(?=\s|$)", "MergedWithPrevious")
    assert Split(r"(?:[^!।.]+|\.(?=\S))+(?:[!।]+|\.)?|[!।]+|\.") == sentences.exported()
    assert sentences == sentences.exported().defined() == sentences.defined()
