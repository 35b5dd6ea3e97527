"""Which rows are taken as unused, and which are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vocabshift.checks.vocabulary import (
    called_unused,
    never_in_text,
    our_unused,
    unused_names,
    with_unused,
)
from vocabshift.evaluation.glitch.references import Reference, find_reference
from vocabshift.models.row_blocks import open_tables
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer

WriteModel = Callable[..., Path]


def reference(
    tokenizer: Tokenizer, write_model: WriteModel, rows: Any, given: Sequence[str] = ()
) -> Reference | None:
    folder = write_model(tokenizer, rows)
    return find_reference(tokenizer, open_tables(folder, tokenizer.row_count).head, given)


def random(n: int) -> Any:
    return np.random.default_rng(1).normal(size=(n, 6))


def test_dummies_come_first(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    """Before padding, and before bytes that UTF-8 never has."""
    more = with_unused(tokenizer, 4)
    found = reference(more, write_model, random(300))
    assert found is not None
    assert ("dummies", [267, 268, 269, 270]) == (found.name, found.ids.tolist())
    assert [267, 268, 269, 270] == our_unused(more)
    assert ["<|vocabshift_unused_0|>"] == [t.content for t in more.added_tokens][1:2]


def test_then_rows_beyond_the_tokenizer(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    found = reference(tokenizer, write_model, random(280))
    assert found is not None
    assert ("beyond the tokenizer", list(range(267, 280))) == (found.name, found.ids.tolist())


def test_rows_of_zeros_are_passed_over(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    """Padding that was put there after training; the impossible bytes follow."""
    rows = np.concatenate([random(267), np.zeros((13, 6))])
    found = reference(tokenizer, write_model, rows)
    assert found is not None
    assert ("bytes", 13) == (found.name, len(found.ids))
    spelled = {tokenizer.model.tokens[i] for i in found.ids.tolist()}
    assert spelled == set("ÀÁõö÷øùúûüýþÿ")


def test_a_row_unlike_the_others_is_left_out(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    rows = np.asarray(random(280)) * 0.1
    rows[270] += 5
    found = reference(tokenizer, write_model, rows)
    assert found is not None
    assert [270] == found.left_out.tolist()
    assert 270 not in found.ids.tolist()


def test_names_that_say_unused(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    """Where a vocabulary lacks the impossible bytes."""
    names = ("<unused0>", "[unused7]", "<|reserved_special_token_3|>", "<|endoftext|>")
    added = [AddedToken(name, 267 + i) for i, name in enumerate(names)]
    model = tokenizer.model
    vocab = {t: i for t, i in model.vocab.items() if t not in set("ÀÁõö÷øùúûüýþÿ")}
    lacking = replace(
        tokenizer,
        model=replace(model, vocab=vocab),
        added_tokens=(*tokenizer.added_tokens, *added),
    )
    assert [] == never_in_text(lacking)
    assert [267, 268, 269] == called_unused(lacking)


def test_what_the_user_names(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    found = reference(tokenizer, write_model, random(280), ["3", "9-11", "<|end|>", "Ġcat"])
    assert found is not None
    assert ("given", [3, 9, 10, 11, 261, 266]) == (found.name, found.ids.tolist())


@pytest.mark.parametrize("given", ["dog", "4-2", "280", "0-99999999999999", "-1"])
def test_what_names_no_row(given: str, tokenizer: Tokenizer, write_model: WriteModel) -> None:
    with pytest.raises(ValueError, match="--reference"):
        reference(tokenizer, write_model, random(280), [given])


def test_numbers_of_dummies() -> None:
    with pytest.raises(ValueError, match="give 0 to 10,000"):
        unused_names(10_001)
    assert ("<|vocabshift_unused_1|>",) == unused_names(1, frozenset(("<|vocabshift_unused_0|>",)))


def of_one_row(tokenizer: Tokenizer, n: int) -> tuple[Tokenizer, Any]:
    """Five more special tokens, the first `n` with one row; rows of impossible bytes are zeros."""
    first = tokenizer.row_count
    added = [AddedToken(f"<role{i}>", first + i, special=True) for i in range(5)]
    more = replace(tokenizer, added_tokens=(*tokenizer.added_tokens, *added))
    rows = random(first + 5)
    rows[never_in_text(tokenizer)] = 0
    rows[first : first + n] = rows[first] + 1e-4 * random(n)
    return more, rows


def test_special_tokens_of_one_row_are_the_last_resort_of_a_tied_model(
    tokenizer: Tokenizer, write_model: WriteModel
) -> None:
    """The fifth has a row of its own, and an untied head says nothing about what was read."""
    more, rows = of_one_row(tokenizer, 4)
    table = open_tables(write_model(more, rows), more.row_count).head
    found = find_reference(more, table, tied=True)
    assert found is not None
    first = tokenizer.row_count
    assert ("one row", list(range(first, first + 4))) == (found.name, found.ids.tolist())
    assert find_reference(more, table) is None


@pytest.mark.parametrize("is_new", [False, True])
def test_few_of_them_are_no_reference_and_new_rows_are_none(
    tokenizer: Tokenizer, write_model: WriteModel, *, is_new: bool
) -> None:
    """New rows begin at the mean of all rows: that they agree says nothing."""
    more, rows = of_one_row(tokenizer, 3)
    if is_new:
        rows[-5:] = rows[:-5].mean(axis=0)
    table = open_tables(write_model(more, rows), more.row_count).head
    assert find_reference(more, table, tied=True) is None
