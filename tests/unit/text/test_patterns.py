"""Named patterns: their regex text, their way into `tokenizer.json` and back, their scanners."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from reference.pre_tokenize import pre_tokenizer
from vocabshift.text import patterns, regexes
from vocabshift.text.patterns import Split
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.writing import PUNCTUATION

TEXT = "The cat's 12345 mats,\n\n  राम का घर। if (a != b)\t{ x.y }  \u00a0ʰǅ  ३४५६ 👩‍👩‍👧\r\n"


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("gpt2", ["It", "'s", " 12345", " a", "!?", " क", "ि", "  ", " b"]),
        ("cl100k", ["It", "'s", " ", "123", "45", " a", "!?", " क", "ि", "  ", " b"]),
        ("qwen2", ["It", "'s", " ", *"12345", " a", "!?", " क", "ि", "  ", " b"]),
        ("o200k", ["It's", " ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("tekken", ["It", "'s", " ", *"12345", " a", "!?", " कि", "  ", " b"]),
        ("deepseek", ["It", "'s", " ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("superbpe-stage2", ["It's ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("ist-stage2", ["It's ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("indic", ["It's", " ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("indic-stage2", ["It's ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("syllables", ["It's", " ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("matra", ["It", "'s", " ", "12", "345", " a", "!?", " कि", "  ", " b"]),
        ("matra-left", ["It", "'s", " ", "123", "45", " a", "!?", " कि", "  ", " b"]),
        ("matra-stage2", ["It's", " ", "12", "345", " a", "!?", " कि", "  ", " b"]),
        ("matra-left-stage2", ["It's ", "123", "45", " a", "!?", " कि", "  ", " b"]),
    ],
)
def test_pieces_of_the_named_patterns(name: str, pieces: list[str]) -> None:
    assert pieces == patterns.splitter(patterns.get_pattern(name))("It's 12345 a!? कि   b")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("one two. three four", ["one two.", " three four"]),
        ("राम घर गया। सीता", ["राम घर गया।", " सीता"]),
        ("v1.5 is 3.14", ["v", "1", ".", "5", " is ", "3", ".", "14"]),
        ("a, b; c: d", ["a, b; c: d"]),
        ("line\nnext", ["line", "\n", "next"]),
    ],
)
def test_ist_stage2_lifts_only_the_space_boundary(text: str, pieces: list[str]) -> None:
    assert pieces == patterns.splitter(patterns.NAMED["ist-stage2"])(text)


def test_two_marks_in_a_row_are_no_boundary() -> None:
    """SuperBPE's own pattern cuts here."""
    assert ["क्ां ख"] == patterns.splitter(patterns.NAMED["superbpe-stage2"])("क्ां ख")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("क्\u200dष है", ["क्\u200dष", " है"]),
        ("می\u200cخواهم.", ["می\u200cخواهم", "."]),
        ("അവന്\u200d!", ["അവന്\u200d", "!"]),
        ("x \u200dक", ["x", " \u200d", "क"]),
        ("❤\ufe0f\u200d🔥क", ["❤\ufe0f", "\u200d🔥", "क"]),
    ],
)
def test_joiners_stay_in_words(text: str, pieces: list[str]) -> None:
    assert pieces == patterns.splitter(patterns.NAMED["indic"])(text)


def test_a_joiner_behind_a_word_is_no_punctuation() -> None:
    split = patterns.splitter(patterns.NAMED["indic-stage2"])
    assert ["क्\u200d, ख\u200c\u200d", "!!", " \u200d!"] == split("क्\u200d, ख\u200c\u200d!! \u200d!")
    assert ["क्", "\u200d,", " ख"] == patterns.splitter(patterns.NAMED["ist-stage2"])("क्\u200d, ख")


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("matra", "語彙a移動", ["語", "彙", "a", "移", "動"]),
        ("matra", "葛\U000e0100のカ々", ["葛\U000e0100", "のカ", "々"]),
        ("matra", "二〇 12〇4", ["二", "〇", " ", "12", "〇", "4"]),
        ("matra", "1234567 १२३४५", ["1", "234", "567", " ", "१२", "३४५"]),
        ("matra", "don't;\n  x", ["don", "'t", ";", "\n", " ", " x"]),
        ("matra", "(कि ख)", ["(कि", " ख", ")"]),
        ("matra", "क्\u200dष", ["क्", "\u200dष"]),
        ("matra-stage2", "a b語 c. d", ["a b", "語", " c. d"]),
    ],
)
def test_matra(name: str, text: str, pieces: list[str]) -> None:
    assert pieces == patterns.splitter(patterns.NAMED[name])(text)


@pytest.mark.parametrize("name", patterns.NAMED)
def test_spec_round_trip(name: str) -> None:
    pattern = patterns.NAMED[name]
    spec = json.loads(json.dumps(patterns.to_spec(pattern)))
    assert pattern == patterns.from_spec(spec)
    library = pre_tokenizers.Sequence([])
    library.__setstate__(json.dumps(spec).encode())
    plain = pre_tokenizers.Sequence([])
    plain.__setstate__(json.dumps(patterns.to_spec(())).encode())
    images = [plain.pre_tokenize_str(piece)[0][0] for piece in patterns.splitter(pattern)(TEXT)]
    assert images == [piece for piece, _ in library.pre_tokenize_str(TEXT)]


def test_gpt2_without_a_split_is_understood() -> None:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    assert (Split(regexes.GPT2),) == patterns.from_spec(byte_level)
    assert (Split(regexes.GPT2),) == patterns.from_spec({**byte_level, "trim_offsets": False})
    assert () == patterns.from_spec({**byte_level, "use_regex": False})


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"type": "Whitespace"},
        {"type": "Sequence", "pretokenizers": []},
        {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True},
        {"type": "ByteLevel"},
        {"type": "Metaspace", "replacement": "▁"},
        {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, patterns.to_spec(())]},
        {"type": "Sequence", "pretokenizers": [patterns.to_spec(()), {"type": "Digits"}]},
    ],
)
def test_what_is_no_byte_level_pattern(spec: dict[str, object] | None) -> None:
    assert patterns.from_spec(spec) is None


def test_punctuation_before_byte_level_is_a_step_of_a_pattern() -> None:
    step = {"type": "Punctuation", "behavior": "Contiguous"}
    spec = {"type": "Sequence", "pretokenizers": [{"type": "Punctuation"}, step]}
    isolated, contiguous = Split(PUNCTUATION), Split(PUNCTUATION, "Contiguous")
    assert (isolated, contiguous) == patterns.text_splits(spec)
    before_bytes = {"type": "Sequence", "pretokenizers": [step, patterns.to_spec(())]}
    assert (contiguous,) == patterns.from_spec(before_bytes)


@pytest.mark.parametrize("alias", patterns.ALIASES)
def test_aliases(alias: str) -> None:
    assert patterns.NAMED[patterns.ALIASES[alias]] is patterns.get_pattern(alias)


def test_a_regex_is_a_pattern_of_one_step() -> None:
    assert (Split(r"\s+"),) == patterns.get_pattern(r"\s+")
    own = (Split("a", "Removed"), Split("b", "Contiguous", True))
    assert own == patterns.get_pattern(own)
    assert () == patterns.get_pattern(())


@pytest.mark.parametrize("name", ["o100k", "llama-3", "ist_stage2", ""])
def test_an_unknown_name_is_told_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=r"the names are gpt2, .*ist-stage2"):
        patterns.get_pattern(name)


def test_a_bad_regex_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="not a regex that tokenizers can run") as error:
        patterns.get_pattern("(unclosed")
    assert "\n" not in str(error.value)


def test_a_bad_behavior_is_refused() -> None:
    with pytest.raises(ValueError, match="isolated"):
        Split("a", "isolated")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", patterns.NAMED)
def test_named_patterns_run_in_the_core(name: str) -> None:
    scanner = compile_pattern(patterns.NAMED[name])
    assert scanner is not None
    assert pre_tokenizer(patterns.NAMED[name])(TEXT) == scanner.split(TEXT)


@pytest.mark.parametrize(
    "pattern",
    [
        (Split(regexes.O200K, "Isolated", True),),
        (Split(regexes.O200K + "|x"),),
        (Split(r"[!]+|x", "MergedWithPrevious"),),
        (Split(regexes.O200K), Split(regexes.HAN), Split("x")),
        (Split(regexes.O200K), Split(r"[!]+", "MergedWithNext", True)),
        (Split(" ", "Contiguous"), Split(regexes.GPT2)),
    ],
)
def test_other_steps_are_run_by_an_automaton(pattern: tuple[Split, ...]) -> None:
    scanner = compile_pattern(pattern)
    assert scanner is not None
    assert pre_tokenizer(pattern)(TEXT) == scanner.split(TEXT)


@pytest.mark.parametrize(
    "pattern",
    [
        (Split(regexes.O200K, "Removed"),),
        (Split(r"x|\s*", "Contiguous"),),
        (Split(r"(.)\1"),),
        (Split(regexes.O200K), Split(r"(?i:\p{L}ß)")),
    ],
)
def test_what_only_a_regex_engine_can_run(pattern: tuple[Split, ...]) -> None:
    assert compile_pattern(pattern) is None


def test_nothing_to_do_is_one_piece() -> None:
    scanner = compile_pattern(())
    assert scanner is not None
    assert [TEXT] == scanner.split(TEXT)
    assert [] == scanner.split("")


def test_the_documents_list_every_pattern_as_the_registry_describes_it() -> None:
    page = Path(__file__).parents[3] / "docs" / "algorithms" / "pre-tokenization.md"
    listed = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    described = []
    for known in patterns.PATTERNS:
        names = " ".join([f"`{known.name}`", *(f"(`{alias}`)" for alias in known.aliases)])
        described.append(f"| {names} | {known.summary} |")
    assert described == listed[: len(described)]


def test_patterns_one_after_the_other() -> None:
    joined = (*patterns.NAMED["ist-stage2"], *patterns.NAMED["o200k"])
    assert joined == patterns.get_pattern("ist-stage2+o200k")
    assert joined == patterns.get_pattern("ist-stage2+llama4")
    assert "ist-stage2+o200k" == patterns.pattern_name(joined)
    assert (Split("o200k+x"),) == patterns.get_pattern("o200k+x")


def test_names_of_patterns() -> None:
    for name, pattern in patterns.NAMED.items():
        assert pattern == patterns.get_pattern(str(patterns.pattern_name(pattern)))
        assert patterns.pattern_name(pattern) == name
    assert None is patterns.pattern_name((Split("x"),))
    assert None is patterns.pattern_name(())
