"""Which runtimes a pre-tokenizer is not for, read off its regexes."""

from __future__ import annotations

from typing import Any

import pytest

from repaired import repaired_pattern
from vocabshift.checks.check import check
from vocabshift.checks.portability import (
    EngineParts,
    PatternLimit,
    about_engine,
    engine_parts,
    pattern_limits,
)
from vocabshift.text.patterns import NAMED, to_spec
from vocabshift.text.regexes import DIGITS, GPT2, QWEN35
from vocabshift.text.splits import Split
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.pipeline import Pipeline
from vocabshift.tokenizer.tokenizer import Tokenizer

EXECUTORCH, IREE = "pytorch-tokenizers", "iree-tokenizer"


def spec(regex: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    """One Split step, in a sequence in a sequence."""
    step = {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}
    return {"type": "Sequence", "pretokenizers": [{"type": "Sequence", "pretokenizers": [step]}]}


@pytest.mark.parametrize(
    ("pre_tokenizer", "limits"),
    [
        (None, {}),
        ({"type": "ByteLevel"}, {}),
        ({"type": "Split", "pattern": {"String": " "}, "behavior": "Removed"}, {}),
        (spec(r"\p{L}+|[^\p{L}]+"), {}),
        (spec(r"\s+(?!\S)|[\s\S]"), {}),
        (spec(r"\p{N}+"), {EXECUTORCH: "loses text"}),
        (spec(r"[\p{L}&&[a-z]]|[\s\S]"), {EXECUTORCH: "gives wrong ids"}),
        (spec(r"\[&&|[\s\S]"), {}),
        (spec(r"\u200c|[\s\S]"), {EXECUTORCH: "does not load"}),
        (spec(r"\\u200c|[\s\S]"), {}),
        (spec(r"[\s\S]", "Contiguous"), {EXECUTORCH: "does not load"}),
        (spec(r"[\s\S]", invert=True), {EXECUTORCH: "does not load"}),
        (spec(r"\p{Lu}(?=x)|[\s\S]"), {IREE: "does not load"}),
        (spec(r"\p{Han}|[\s\S]"), {IREE: "does not load"}),
        (spec(r"a\u200c(?<!\P{L})"), {EXECUTORCH: "loses text", IREE: "does not load"}),
    ],
)
def test_limits(pre_tokenizer: dict[str, Any] | None, limits: dict[str, str]) -> None:
    assert limits == {limit.runtime: limit.effect for limit in pattern_limits(pre_tokenizer)}


@pytest.mark.parametrize("name", NAMED)
def test_executorch_runs_every_named_pattern(name: str) -> None:
    assert EXECUTORCH not in {limit.runtime for limit in pattern_limits(to_spec(NAMED[name]))}


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "qwen2", "o200k", "tekken"])
def test_repaired_words_are_for_both(name: str) -> None:
    assert () == pattern_limits(to_spec(repaired_pattern(NAMED[name])))


def test_check_reports_them() -> None:
    sparse = Tokenizer(BpeModel({"a": 0}, ()), pre_tokenizer=spec("a"))
    reason = "it keeps what a regex matches and nothing else; no match has"
    (limit,) = check(sparse).pattern_limits
    assert isinstance(limit, PatternLimit)
    assert limit.reason.startswith(reason)
    assert (
        ()
        == check(
            Tokenizer(BpeModel({"a": 0}, ()), pre_tokenizer=to_spec((Split("a"),)))
        ).pattern_limits
    )


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
LETTERS = spec(r"[\p{L}]+")["pretokenizers"][0]["pretokenizers"][0]
SPACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
TRIMMED = BYTE_LEVEL | {"trim_offsets": True}
METASPACE = {"type": "Metaspace", "replacement": "▁"}
PUNCTUATION = {"type": "Punctuation", "behavior": "Contiguous"}
DIGITS_OF_BYTES = {"type": "Digits", "individual_digits": False}
DIGITS_THEN_GPT2 = (DIGITS, "characters"), (GPT2, "gpt2")


@pytest.mark.parametrize(
    ("normalizer", "pre_tokenizer", "expected"),
    [
        (None, None, EngineParts("core", None, ())),
        (None, to_spec(NAMED["qwen35"]), EngineParts("core", None, ((QWEN35, "qwen35"),))),
        (
            None,
            to_spec((Split(r"[\p{L}]+"), Split(r"(.)\1"))),
            EngineParts(
                "core behind tokenizers",
                None,
                ((r"[\p{L}]+", "automaton"), (r"(.)\1", "tokenizers")),
            ),
        ),
        ({"type": "NFC"}, BYTE_LEVEL, EngineParts("core", "core", ((GPT2, "gpt2"),))),
        (
            None,
            {
                "type": "Sequence",
                "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL],
            },
            EngineParts("core", None, DIGITS_THEN_GPT2),
        ),
        (SPACE, None, EngineParts("core", "core", ())),
        (
            SPACE,
            {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"},
            EngineParts("core", "core", ((" ", "characters"),)),
        ),
        (
            {"type": "NFKC"},
            BYTE_LEVEL,
            EngineParts("core behind tokenizers", "vocabshift", ((GPT2, "gpt2"),)),
        ),
        (
            SPACE,
            {"type": "Sequence", "pretokenizers": [LETTERS, {"type": "Whitespace"}]},
            EngineParts(
                "core behind tokenizers",
                "tokenizers",
                (("Split", "tokenizers"), ("Whitespace", "tokenizers")),
            ),
        ),
        (
            None,
            {"type": "Metaspace", "replacement": "▁"},
            EngineParts("core", None, (("Metaspace", "metaspace"), ("▁", "characters"))),
        ),
        (
            None,
            {"type": "Metaspace", "replacement": "▁", "split": False},
            EngineParts("core", None, (("Metaspace", "metaspace"),)),
        ),
        (
            None,
            {"type": "Sequence", "pretokenizers": [LETTERS, METASPACE]},
            EngineParts("tokenizers", None, (("Split", "tokenizers"), ("Metaspace", "tokenizers"))),
        ),
        (
            None,
            {"type": "Sequence", "pretokenizers": [PUNCTUATION, BYTE_LEVEL, DIGITS_OF_BYTES]},
            EngineParts(
                "core",
                None,
                (("Punctuation", "characters"), (GPT2, "gpt2"), ("Digits", "bytes")),
            ),
        ),
        (
            None,
            {"type": "Sequence", "pretokenizers": [TRIMMED, PUNCTUATION]},
            EngineParts(
                "core behind tokenizers",
                None,
                (("ByteLevel", "tokenizers"), ("Punctuation", "tokenizers")),
            ),
        ),
    ],
)
def test_what_runs_a_tokenizer(
    normalizer: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None, expected: EngineParts
) -> None:
    """It is what the compiled pipeline says of itself."""
    tokenizer = Tokenizer(
        BpeModel({"a": 0, "b": 1}, ()), normalizer=normalizer, pre_tokenizer=pre_tokenizer
    )
    assert expected == engine_parts(tokenizer)
    assert Pipeline(tokenizer, parse_special=True).engine == expected.engine
    (sentence,) = about_engine({"tokenizer": "t", "engine": expected.to_dict()})
    assert ("core alone" in sentence) == (expected.engine == "core")


def test_nothing_is_said_of_an_engine_that_is_not_known() -> None:
    assert [] == about_engine({"tokenizer": "t"})


def test_long_regexes_take_one_look() -> None:
    """A file may hold a regex of any length; two looks at each pair of places took ten minutes."""
    for regex in (r"\[" * 100_000, r"\\p{A" + "a" * 100_000):
        pattern_limits(spec(f"a|{regex}"))
        Split(f"a|{regex}").defined()
