"""Thresholds, verdicts and actions; and the curve against a slow one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import glitch as slow
from vocabshift.evaluation.glitch.classes import (
    REASONS,
    action_of,
    reason_of,
    threshold,
    verdict_of,
)
from vocabshift.evaluation.glitch.references import K, last_of_vocabulary, reference_curve


def test_threshold_by_reference_misses_one_in_n_plus_one() -> None:
    """Exchangeable rows: the chance that one more lies above the highest of n is 1/(n+1)."""
    random = np.random.default_rng(5)
    n, tries = 9, 4000
    missed = 0
    for _ in range(tries):
        rows = random.normal(size=n + 1).astype(np.float32)
        found = threshold(rows, np.ones(n + 1, dtype=bool), rows[:n])
        assert found.is_by_reference
        missed += rows[n] > found.value
    assert 1 / (n + 1) == pytest.approx(missed / tries, abs=0.02)


@pytest.mark.parametrize("n", [0, 1])
def test_without_a_reference_the_lowest_two_per_cent_are_candidates(n: int) -> None:
    values = np.arange(1000, dtype=np.float32)
    judged = np.ones(1000, dtype=bool)
    judged[:100] = False
    found = threshold(values, judged, values[:n])
    assert not found.is_by_reference
    assert 18 == int((judged & (values <= found.value)).sum())
    assert "2 %" in found.why


@pytest.mark.parametrize(
    ("probability", "is_encoded", "verdict"),
    [
        (0.95, True, "strong_rejected"),
        (0.95, False, "strong_rejected"),
        (0.5, False, "weak_rejected"),
        (0.05, True, "weak_verified"),
        (0.05, False, "verification_encoding_failed"),
        (0.0005, True, "strong_verified"),
        (0.0005, False, "verification_encoding_failed"),
    ],
)
def test_verdicts_are_those_of_land_and_bartolo(
    probability: float, is_encoded: bool, verdict: str
) -> None:
    assert verdict == verdict_of(probability, is_encoded=is_encoded)


@pytest.mark.parametrize(
    ("kind", "is_suspect", "count", "verdict", "action"),
    [
        ("unreachable", False, None, None, "prune"),
        ("unreachable_by_pipeline", True, 0, None, "prune"),
        ("ordinary", False, 0, None, None),
        ("ordinary", True, 0, None, "prune"),
        ("ordinary", True, 3, None, "re-initialize"),
        ("ordinary", False, 3, "weak_verified", "re-initialize"),
        ("ordinary", False, 3, "weak_rejected", None),
        ("superword", True, None, "strong_verified", "re-initialize"),
        ("ordinary", True, 0, "weak_rejected", "ignore"),
        ("special", True, 0, None, "ignore"),
        ("dummy", True, 0, None, "ignore"),
        ("byte_piece", True, 0, None, "ignore"),
        ("partial_utf8", True, 0, None, "ignore"),
    ],
)
def test_actions(
    kind: str, is_suspect: bool, count: int | None, verdict: str | None, action: str | None
) -> None:
    found = action_of(kind, is_suspect=is_suspect, count=count, verdict=verdict)
    assert action == (None if found is None else found[0])


@pytest.mark.parametrize(
    ("kind", "is_text", "count", "inside", "reason"),
    [
        ("partial_utf8", False, 0, 90, "partial UTF-8"),
        ("byte_piece", True, 0, 0, "never in the text"),
        ("unreachable", True, None, None, "no text yields it"),
        ("ordinary", True, None, None, None),
        ("special", True, 0, 0, None),
        ("ordinary", True, 0, 10, "merge residue"),
        ("ordinary", True, 0, 9, "never in the text"),
        ("ordinary", True, 2, 20, "merge residue"),
        ("ordinary", True, 2, 19, "rare in the text"),
        ("ordinary", True, 10, 99, "in the text"),
    ],
)
def test_reasons(
    kind: str, is_text: bool, count: int | None, inside: int | None, reason: str | None
) -> None:
    assert reason == reason_of(kind, is_text=is_text, count=count, inside=inside)
    assert reason is None or reason in REASONS


@given(st.lists(st.integers(0, 30), min_size=1, max_size=130), st.data())
def test_the_curve_counts_the_nearest(numbers: list[int], data: st.DataObject) -> None:
    """Ties go by id; a K above the number of rows is left out."""
    values = np.array(numbers, dtype=np.float32)
    late = data.draw(st.sets(st.integers(0, len(numbers) - 1)))
    group = np.isin(np.arange(len(numbers)), list(late))
    found = reference_curve(values, np.ones(len(numbers), dtype=bool), {"late": group})
    assert [k for k in K if k <= len(numbers)] == [point.k for point in found]
    for point in found:
        assert slow.curve(values.tolist(), late, point.k) == point.counts["late"]


def test_the_last_tenth_is_of_the_ids_that_name_tokens() -> None:
    in_model = np.ones(30, dtype=bool)
    in_model[[3, 29]] = False
    assert [26, 27, 28] == np.flatnonzero(last_of_vocabulary(in_model)).tolist()
