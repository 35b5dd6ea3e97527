"""Latency: who is asked when, what is counted, and the bytes that prompts are cut to."""

from __future__ import annotations

import math
import statistics
from hashlib import sha256

import pytest

from vocabshift.errors import CorpusError
from vocabshift.evaluation.latency.latency import Answer, Latency, cut_prompts, measure_latency

PROMPTS = {"eng": ["one", "a longer one"], "hin": ["एक"]}


class Stub:
    """Answers with times that it is given, and notes what it is asked."""

    def __init__(self, name: str, log: list[tuple[str, str]], *, memory: int | None = None) -> None:
        self.name, self.log, self.memory = name, log, memory
        self.tokenizer_sha256 = None if memory is None else "ab"
        self.n_asked = 0

    def ask(self, prompt: str) -> Answer:
        self.log.append((self.name, prompt))
        self.n_asked += 1
        return Answer(
            input_tokens=len(prompt),
            output_tokens=5,
            first="क".encode(),
            rest="ab कख".encode(),  # 9 bytes, 5 characters
            first_token_seconds=0.5 * self.n_asked,
            seconds=0.5 * self.n_asked + 2.0,
        )

    def peak_memory(self, prompt: str) -> int | None:
        return None if self.memory is None else self.memory + len(prompt)


def timed(**options: int) -> tuple[Latency, list[tuple[str, str]]]:
    log: list[tuple[str, str]] = []
    responders = {"old": Stub("old", log, memory=100), "new": Stub("new", log)}
    return measure_latency(responders, PROMPTS, **options), log


def test_models_take_turns_and_each_repeat_asks_everything() -> None:
    _, log = timed(warmup=3, repeats=4)
    warm, rest = log[:6], log[6:]
    assert ["old", "new"] * 3 == [name for name, _ in warm]
    assert {prompt for own in PROMPTS.values() for prompt in own} == {p for _, p in warm}
    pairs = [rest[at : at + 2] for at in range(0, len(rest), 2)]
    assert all({"old", "new"} == {a, b} and p == q for (a, p), (b, q) in pairs)
    assert ["one", "a longer one", "एक"] * 4 == [pair[0][1] for pair in pairs]
    assert 6 == sum(pair[0][0] == "new" for pair in pairs)  # each is the first one equally often


def test_every_row_names_its_prompts_and_its_tokenizer() -> None:
    """How often they are asked does not matter; a server's tokenizer is not known."""
    english, hindi = sha256(b"one\na longer one\n"), sha256("एक\n".encode())
    for repeats in (1, 3):
        rows = timed(repeats=repeats)[0].results
        found = {(row.subject, row.language, row.tokenizer_sha256, row.text_sha256) for row in rows}
        assert found == {
            (subject, language, tokenizer, text.hexdigest())
            for subject, tokenizer in (("old", "ab"), ("new", None))
            for language, text in (("eng", english), ("hin", hindi))
        }


def test_rows_are_ratios_of_sums() -> None:
    found, _ = timed(warmup=0, repeats=2)
    results = found.results
    value = {row.metric: row.value for row in results.where(subject="old", language="eng")}
    # Asked 1st, 2nd (English), 3rd (Hindi), then 4th, 5th, 6th.
    assert math.isclose(0.5 * statistics.mean([1, 2, 4, 5]), value["ttft_seconds"])
    assert 4 / 2.0 == value["output_tokens_per_second"]
    assert 9 / 2.0 == value["output_bytes_per_second"]
    assert 5 / 2.0 == value["output_characters_per_second"]
    assert (3 + 12) / 2 == value["input_tokens"]
    assert 4 / 2.0 * 1 == value["text_bytes_per_second"]  # a byte is a token to this stub
    assert 100 + len("a longer one") == value["peak_memory_bytes"]
    hindi = {row.metric: row.value for row in results.where(subject="old", language="hin")}
    assert 4 / 2.0 * 6 / 2 == hindi["text_bytes_per_second"]
    assert "peak_memory_bytes" not in results.where(subject="new").distinct("metric")
    first = next(iter(results.where(metric="ttft_seconds")))
    assert (4, 0.75, 2.25) == (first.n, first.ci_low, first.ci_high)


def test_spread_is_over_repeats_and_one_repeat_has_none() -> None:
    found, _ = timed(warmup=0, repeats=3)
    [row] = [
        row
        for row in found.spread
        if (row["subject"], row["language"], row["metric"]) == ("old", "hin", "ttft_seconds")
    ]
    assert math.isclose(statistics.stdev([1.5, 3.0, 4.5]), row["sd"])
    once, _ = timed(warmup=0, repeats=1)
    assert [] == once.spread
    assert {None} == {row.ci_low for row in once.results}


def test_a_request_is_told_in_numbers() -> None:
    found, _ = timed(warmup=0, repeats=1)
    row = found.requests[-1].to_dict()
    assert (3, 9, 6) == (row["first_bytes"], row["rest_bytes"], row["prompt_bytes"])
    assert ("new", "hin", 0, 0, 5) == tuple(
        row[key] for key in ("subject", "language", "prompt", "repeat", "output_tokens")
    )


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="a model and a prompt"):
        measure_latency({}, PROMPTS)
    with pytest.raises(ValueError, match="repeats 0"):
        measure_latency({"old": Stub("old", [])}, PROMPTS, repeats=0)


TEXT = {"eng": ["a b", "", "ccc ddd eeefff", "gggggggggggg", "h i j k l m n"], "hin": ["कखगघ"] * 4}


@pytest.mark.parametrize("n_bytes", [1, 2, 4, 5, 7, 10, 11])
def test_prompts_are_heads_of_documents_in_bytes(n_bytes: int) -> None:
    """Never longer, never cut inside a character, and nothing left out before their end."""
    for language, prompts in cut_prompts(TEXT, n_prompts=1, prompt_bytes=n_bytes).items():
        [prompt] = prompts
        assert prompt
        assert len(prompt.encode()) <= max(n_bytes, len(prompt[0].encode()))
        joined = "\n".join(text for text in TEXT[language] if text)
        assert joined.startswith(prompt)


def test_prompts_end_with_a_word_and_begin_with_a_document() -> None:
    eight = cut_prompts(TEXT, n_prompts=3, prompt_bytes=8)
    assert ["a b\nccc", "gggggggg", "h i j k"] == eight["eng"]
    assert ["कख", "कख", "कख"] == eight["hin"]


def test_too_little_text_is_refused() -> None:
    with pytest.raises(CorpusError, match=r"'eng' gives 3 prompts of 8 bytes and 4"):
        cut_prompts(TEXT, n_prompts=4, prompt_bytes=8)
    with pytest.raises(CorpusError, match="no text"):
        cut_prompts({"eng": ["", " "]})
    with pytest.raises(ValueError, match="prompt_bytes is 0"):
        cut_prompts(TEXT, prompt_bytes=0)
