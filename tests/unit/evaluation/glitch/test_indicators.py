"""Indicators, held against one row at a time in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from reference import glitch as slow
from strategies import examples
from vocabshift.evaluation.glitch import indicators
from vocabshift.models import row_blocks as tables
from vocabshift.models.row_blocks import RowTable
from vocabshift.models.shards import open_checkpoint


def table_of(matrix: Any, folder: Path) -> RowTable:
    save_file({"a.weight": np.asarray(matrix, dtype=np.float32)}, folder / "model.safetensors")
    checkpoint = open_checkpoint(folder)
    assert checkpoint is not None
    return RowTable("a.weight", *checkpoint.tensors["a.weight"])


def rows(seed: int, n: int = 60, width: int = 9) -> Any:
    """Random rows around a common point, with one direction that stands out."""
    random = np.random.default_rng(seed)
    found = random.normal(size=(n, width)) + random.normal(size=width)
    found += np.outer(random.normal(size=n) * 4, random.normal(size=width))
    return found.astype(np.float32)


@given(seed=st.integers(0, 2**32 - 1), n_reference=st.integers(1, 7))
@examples(25)
def test_every_distance_is_that_of_one_row_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n_reference: int
) -> None:
    matrix = rows(seed)
    reference = np.arange(n_reference, dtype=np.int64) * 3
    table = table_of(matrix, tmp_path_factory.mktemp("rows"))
    found = indicators.distances(table, reference)
    for name, expected in slow.distances(matrix, reference.tolist()).items():
        np.testing.assert_allclose(expected, found[name].values, rtol=2e-3, atol=2e-4, err_msg=name)
    if n_reference > 1:
        own = slow.among_themselves(matrix, reference.tolist())
        np.testing.assert_allclose(own, found["cosine"].of_reference, rtol=1e-3, atol=1e-5)


def test_blocks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of several blocks, the last one shorter, gives what one block gives."""
    matrix = rows(3)
    table = table_of(matrix, tmp_path)
    reference = np.array([5, 6, 50])
    whole = indicators.distances(table, reference)
    norms = indicators.norms(table)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 9 * 4 * 7)
    assert [0, 7, 14] == [start for start, _ in table.blocks()][:3]
    parts = indicators.distances(table, reference)
    for name, scores in whole.items():
        np.testing.assert_allclose(scores.values, parts[name].values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), norms, rtol=1e-5)
    np.testing.assert_array_equal(norms, indicators.norms(table))


def test_small_distances_are_not_lost() -> None:
    """A distance of five millionths has its first digits, and that of equal rows is none."""
    row = np.ones(1000, dtype=np.float32)
    other = row.copy()
    other[0] += 1e-1
    found = indicators.cosine_distances(np.stack([row, other]), row)
    assert 0 == pytest.approx(found[0], abs=1e-12)
    assert slow.cosine_distance(other.astype(float), row) == pytest.approx(found[1], rel=1e-2)


def test_the_first_component_is_found_where_the_second_is_about_as_strong(tmp_path: Path) -> None:
    """Of plain noise, as of an untrained table."""
    matrix = np.random.default_rng(3).normal(size=(300, 40)).astype(np.float32)
    table, centre = table_of(matrix, tmp_path), matrix.mean(axis=0)
    found = indicators.first_component(table, centre)
    expected = np.linalg.svd((matrix - centre).astype(np.float64))[2][0]
    assert abs(found @ expected) == pytest.approx(1, abs=1e-6)


def test_a_row_of_zeros_has_no_distance() -> None:
    """It points nowhere, and nothing trained it."""
    found = indicators.cosine_distances(
        np.zeros((1, 4), dtype=np.float32), np.ones(4, dtype=np.float32)
    )
    assert [0.0] == found.tolist()


def test_one_reference_row_has_no_others(tmp_path: Path) -> None:
    found = indicators.distances(table_of(rows(1), tmp_path), np.array([4]))
    assert [0.0] == found["cosine"].of_reference.tolist()
    assert 0 == pytest.approx(found["cosine"].values[4], abs=1e-6)
