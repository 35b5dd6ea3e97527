"""Lines of any length, worked on in parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from vocabshift.evaluation.lines import token_facts, words
from vocabshift.evaluation.lines.counts import count_lines
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.token_facts import TokenFacts

numbers = st.lists(st.integers(0, 9), max_size=20)


@pytest.fixture(params=[1, 3, 7])
def small_parts(request, monkeypatch) -> None:
    monkeypatch.setattr(token_facts, "AT_ONCE", request.param)


@pytest.mark.usefixtures("small_parts")
@given(values=numbers)
@examples(50)
def test_running_sums_are_those_of_the_whole(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    seen = []

    def part_of(part: slice) -> np.ndarray:
        seen.append(part.stop - part.start)
        return array[part]

    assert [sum(values[:n]) for n in range(len(values) + 1)] == token_facts.running_sums(
        len(values), part_of
    ).tolist()
    assert all(size <= token_facts.AT_ONCE for size in seen)


@pytest.mark.usefixtures("small_parts")
@given(lengths=numbers)
@examples(50)
def test_repeated_is_a_part_of_repeat(lengths: list[int]) -> None:
    """Lines without tokens included."""
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    values = np.arange(len(lengths)) * 10
    parts = [
        token_facts.repeated(values, offsets, part).tolist()
        for part in token_facts.parts_of(int(offsets[-1]))
    ]
    assert np.repeat(values, lengths).tolist() == [value for part in parts for value in part]


@pytest.mark.usefixtures("small_parts")
def test_parts_change_no_count(make_tokenizer, monkeypatch) -> None:
    engine = engine_of(make_tokenizer([("a", "b"), ("Ġ", "ab")]))
    facts = TokenFacts(engine)
    lines = ["ab " * n + "é क\u3000x" for n in range(1, 12)]
    sizes = []

    def is_text(text: str) -> np.ndarray:
        sizes.append(len(text))
        return whole_is_text(text)

    whole_is_text = words._is_text
    monkeypatch.setattr(words, "_is_text", is_text)
    in_parts = count_lines(engine, facts, lines).lines
    assert max(sizes) <= token_facts.AT_ONCE
    monkeypatch.undo()
    whole = count_lines(engine, facts, lines).lines
    for name in whole.__slots__:
        np.testing.assert_array_equal(getattr(whole, name), getattr(in_parts, name))
