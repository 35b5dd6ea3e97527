"""How far rows moved, and which row is which where ids differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vocabshift.errors import VocabMismatchError
from vocabshift.evaluation.glitch.indicators import Drift, drift
from vocabshift.models.row_blocks import open_tables
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer

WriteModel = Callable[..., Path]


def measured(now: Path, tokenizer: Tokenizer, initial: Path, before: Tokenizer) -> Drift:
    return drift(
        open_tables(now, tokenizer.row_count),
        tokenizer,
        open_tables(initial, before.row_count),
        before,
    )


def reversed_ids(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokens under other ids (the special one keeps its own)."""
    size = tokenizer.vocab_size
    vocab = {token: size - 1 - i for token, i in tokenizer.model.vocab.items()}
    return replace(tokenizer, model=replace(tokenizer.model, vocab=vocab))


def test_distance_and_change_of_norm_by_id(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    random = np.random.default_rng(2)
    first, last = random.normal(size=(2, 270, 5)).astype(np.float32)
    head, head_last = random.normal(size=(2, 270, 5)).astype(np.float32)
    now = write_model(tokenizer, last, head_last, name="now")
    found = measured(now, tokenizer, write_model(tokenizer, first, head, name="first"), tokenizer)
    assert 270 == found.n_matched
    for i in (0, 77, 269):
        assert np.linalg.norm(last[i] - first[i]) == pytest.approx(found.distance[i], rel=1e-5)
        change = np.linalg.norm(last[i]) - np.linalg.norm(first[i])
        assert change == pytest.approx(found.norm_change[i], abs=1e-5)
        assert found.head_distance is not None
        moved = np.linalg.norm(head_last[i] - head[i])
        assert moved == pytest.approx(found.head_distance[i], rel=1e-5)


@pytest.mark.parametrize("has_map", [False, True])
def test_other_ids_are_matched(
    has_map: bool, tokenizer: Tokenizer, write_model: WriteModel
) -> None:
    """By transfer_map.json where it lies beside the model, else by bytes."""
    other = reversed_ids(tokenizer)
    rows = np.random.default_rng(2).normal(size=(267, 5)).astype(np.float32)
    new_to_old = {other.model.vocab[t]: i for t, i in tokenizer.model.vocab.items()} | {266: 266}
    order = [new_to_old[i] for i in range(267)]
    initial = write_model(tokenizer, rows, name="first")
    now = write_model(other, rows[order] + 1, name="now")
    if has_map:
        # A map that says other things than bytes do: two tokens exchanged.
        kept = {old: new for new, old in new_to_old.items()}
        kept[0], kept[1] = kept[1], kept[0]
        TokenIdMap.between(tokenizer, other, kept).save(now, "transfer_map.json")
    found = measured(now, other, initial, tokenizer)
    assert ("transfer_map.json" in found.how) == has_map
    expected = np.full(267, np.sqrt(5), dtype=np.float32)
    if has_map:
        for new in (new_to_old[0], new_to_old[1]):
            expected[new] = found.distance[new]
            assert np.sqrt(5) != pytest.approx(found.distance[new], rel=1e-3)
    np.testing.assert_allclose(expected, found.distance, rtol=1e-5)


def test_tokens_of_one_model_alone_have_no_drift(
    tokenizer: Tokenizer, write_model: WriteModel
) -> None:
    model = tokenizer.model
    more = replace(
        tokenizer,
        model=replace(
            model, vocab={**model.vocab, "Ġmat": 267}, merges=(*model.merges, ("Ġ", "mat"))
        ),
    )
    initial = write_model(tokenizer, np.zeros((267, 5)), name="first")
    found = measured(write_model(more, np.ones((268, 5)), name="now"), more, initial, tokenizer)
    assert np.isnan(found.distance[267])
    assert np.sqrt(5) == pytest.approx(found.distance[266])


@pytest.mark.parametrize(("still", "n_held"), [(60, 0), (200, 200)])
def test_rows_that_training_held_have_no_drift(
    still: int, n_held: int, tokenizer: Tokenizer, write_model: WriteModel
) -> None:
    """A few rows that did not move are of tokens that training never met; many were held."""
    initial = write_model(tokenizer, np.ones((267, 5)), name="first")
    rows = np.ones((267, 5))
    rows[still:] += 1
    found = measured(write_model(tokenizer, rows, name="now"), tokenizer, initial, tokenizer)
    assert n_held == found.n_held
    assert np.isnan(found.distance[:still]).all() == (n_held > 0)
    np.testing.assert_allclose(np.sqrt(5), found.distance[still:])


def test_another_width_is_refused(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    initial = write_model(tokenizer, np.ones((267, 4)), name="first")
    with pytest.raises(VocabMismatchError, match="not the same model"):
        measured(write_model(tokenizer, np.ones((267, 5))), tokenizer, initial, tokenizer)
