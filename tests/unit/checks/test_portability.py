"""Which runtimes a pre-tokenizer is not for, read off its regexes."""

from __future__ import annotations

from typing import Any

import pytest

from repaired import repaired_pattern
from vocabshift.checks.check import check
from vocabshift.checks.portability import PatternLimit, pattern_limits
from vocabshift.text.patterns import NAMED, to_spec
from vocabshift.text.splits import Split
from vocabshift.tokenizer.model import BpeModel
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
