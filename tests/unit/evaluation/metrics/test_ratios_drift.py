"""Cuts compared with a base's."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from reference import metrics as slow
from vocabshift.evaluation.lines.counts import count_lines
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.token_facts import TokenFacts
from vocabshift.evaluation.metrics import ratios
from vocabshift.tokenizer.added_tokens import AddedToken


def test_distances_are_those_of_the_definition() -> None:
    """Levenshtein distances agree with the table of Wagner and Fischer."""
    random.seed(3)
    pairs = [
        ([random.randrange(5) for _ in range(random.randrange(12))] for _ in range(2))
        for _ in range(80)
    ]
    pairs = [tuple(pair) for pair in pairs]
    assert [slow.levenshtein(*pair) for pair in pairs] == ratios.edit_distances(pairs).tolist()
    assert [int(a == b) for a, b in pairs] == ratios.same_lines(pairs).tolist()


def test_rows_keep_what_is_equal() -> None:
    """Numbers of surrogates too, and numbers beyond characters."""
    numbers = np.array([0, 0xD800, 0xDC00, 10, 0x10FFFF, 0xD800])
    offsets = np.array([0, 3, 3, 6])
    lists = [[0, 0xD800, 0xDC00], [], [10, 0x10FFFF, 0xD800]]
    assert lists == [list(map(ord, row)) for row in ratios.rows_of(numbers, offsets, 0x110000)]
    assert lists == ratios.rows_of(numbers, offsets, 0x110001)


def test_tokens_are_the_same_by_their_bytes(make_tokenizer) -> None:
    """Ids do not matter: a token is the same where it stands for the same bytes."""
    special = AddedToken("ab", 300, special=True)
    ends = [AddedToken("<s>", 258)], [AddedToken("<s>", 400)]
    base = engine_of(make_tokenizer([("a", "b"), ("c", "d")], added_tokens=ends[0]))
    ours = engine_of(make_tokenizer([("c", "d"), ("x", "y")], added_tokens=ends[1]))
    facts = [TokenFacts(engine) for engine in (ours, base)]
    of_ours, of_base = (of_engine.hashes for of_engine in facts)
    assert of_base[257] == of_ours[256]  # cd
    assert of_base[258] == of_ours[400]  # <s>
    assert of_ours[257] not in of_base  # xy
    counts = [
        count_lines(engine, of_engine, ["cd cd", "ab", "xyz"])
        for engine, of_engine in zip((ours, base), facts, strict=True)
    ]
    pairs = ratios.paired(counts[0], of_ours, counts[1], of_base)
    assert [0, 2, 2] == ratios.edit_distances(pairs).tolist()  # a|b for ab; xy for x|y
    assert [1, 0, 0] == ratios.same_lines(pairs).tolist()
    other = TokenFacts(engine_of(make_tokenizer(added_tokens=[special])))
    assert other.hashes[300] not in of_base  # a special "ab" is no "ab" of text


def test_the_extra_is_named(monkeypatch) -> None:
    """Without rapidfuzz the error says what to install."""
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(ImportError, match=r"vocabshift\[stats\]"):
        ratios.edit_distances([([1], [2])])
