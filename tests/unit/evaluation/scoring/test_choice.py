"""Which model is best: weighted sums over languages, intervals, ties."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vocabshift.evaluation.scoring.choice import FEWEST_DOCUMENTS, rank
from vocabshift.evaluation.scoring.score import DocumentScore

SIZES = [30, 80, 55, 10, 120, 64] * 5
WEIGHTS = {"hi": 1.0, "en": 0.5}


def scored(
    *, hi: float, en: float, noise: float = 0.0, seed: int = 0, is_lost: bool = False
) -> list[DocumentScore]:
    """Documents with so many bits per byte, and noise of its own in each."""
    generator = np.random.default_rng(seed)
    return [
        DocumentScore(
            language,
            size,
            (bits + noise * float(generator.normal())) * size * math.log(2),
            is_lost and language == "en",
        )
        for language, bits in (("hi", hi), ("en", en))
        for size in SIZES
    ]


BEFORE = scored(hi=2.0, en=1.0)


def test_what_is_saved_is_the_weighted_sum() -> None:
    found = rank({"a": scored(hi=1.6, en=1.1), "b": scored(hi=1.9, en=1.0)}, BEFORE, WEIGHTS)
    assert ["a", "b"] == [each.name for each in found]
    assert [0.35, 0.1] == [pytest.approx(each.saved) for each in found]
    assert found[0].changes == {"hi": pytest.approx(-0.4), "en": pytest.approx(0.1)}
    assert found[1].behind == pytest.approx(0.25)


def test_a_language_without_weight_does_not_count() -> None:
    [found] = rank({"a": scored(hi=1.6, en=9.0)}, BEFORE, {"hi": 1.0})
    assert found.saved == pytest.approx(0.4)
    assert found.changes["en"] == pytest.approx(8.0)


def test_a_clear_difference_and_a_tie() -> None:
    models = {
        "best": scored(hi=1.5, en=1.0, noise=0.05, seed=1),
        "near": scored(hi=1.505, en=1.0, noise=0.05, seed=2),
        "far": scored(hi=1.8, en=1.0, noise=0.05, seed=3),
    }
    best, near, far = rank(models, BEFORE, WEIGHTS)
    assert {best.name, near.name} == {"best", "near"}
    assert (False, True, False) == (best.is_tied, near.is_tied, far.is_tied)
    assert far.behind_low is not None
    assert far.behind_low > 0.2
    assert best.saved_low is not None
    assert best.saved_high is not None
    assert best.saved_low < best.saved < best.saved_high


def test_the_interval_is_that_of_a_plain_bootstrap_over_documents() -> None:
    model = scored(hi=1.7, en=1.05, noise=0.3, seed=4)
    [found] = rank({"a": model}, BEFORE, WEIGHTS)
    generator = np.random.default_rng(8)
    of = {name: [d for d in model if d.language == name] for name in WEIGHTS}
    base = {name: [d for d in BEFORE if d.language == name] for name in WEIGHTS}
    drawn = []
    for _ in range(4000):
        saved = 0.0
        for name, weight in WEIGHTS.items():
            places = generator.integers(0, len(SIZES), len(SIZES))
            nats = sum(base[name][i].nats - of[name][i].nats for i in places)
            saved += weight * nats / math.log(2) / sum(SIZES[i] for i in places)
        drawn.append(saved)
    low, high = np.quantile(drawn, (0.025, 0.975))
    assert (found.saved_low, found.saved_high) == pytest.approx((low, high), abs=0.02)


def test_more_rivals_make_the_interval_of_a_difference_wider() -> None:
    """Bonferroni: all comparisons with the best hold together."""
    two = {
        "best": scored(hi=1.5, en=1.0, noise=0.2, seed=1),
        "other": scored(hi=1.7, en=1.0, noise=0.2, seed=2),
    }
    more = {f"r{n}": scored(hi=1.9, en=1.0, noise=0.2, seed=n) for n in range(3, 9)}
    _, narrow = rank(two, BEFORE, WEIGHTS)
    wide = rank({**two, **more}, BEFORE, WEIGHTS)[1]
    assert narrow.name == wide.name == "other"
    assert narrow.behind_low is not None
    assert wide.behind_low is not None
    assert wide.behind_low < narrow.behind_low


@pytest.mark.parametrize("n", [1, FEWEST_DOCUMENTS - 1, FEWEST_DOCUMENTS])
def test_few_documents_have_no_interval_and_are_tied(n: int) -> None:
    before = [DocumentScore("hi", 10, 20.0 + i) for i in range(n)]
    models = {name: [DocumentScore("hi", 10, nats)] * n for name, nats in (("a", 1), ("b", 19))}
    best, other = rank(models, before, {"hi": 1.0})
    assert (best.saved_low is None) == other.is_tied == (n < FEWEST_DOCUMENTS)


def test_languages_of_equal_size_are_resampled_independently() -> None:
    """What one loses where the other gains would cancel in every resample of both alike."""
    bits = np.random.default_rng(3).normal(0, 40, 40)
    before = [DocumentScore(name, 100, 400.0) for name in WEIGHTS for _ in bits]
    nats = [*(400 + bits), *(400 - bits)]
    own = [DocumentScore(d.language, 100, float(n)) for d, n in zip(before, nats, strict=True)]
    [found] = rank({"a": own}, before, {"hi": 1.0, "en": 1.0})
    assert found.saved == pytest.approx(0.0)
    assert found.saved_low is not None
    assert found.saved_low < -0.1


def test_other_documents_and_lost_text_are_refused() -> None:
    with pytest.raises(ValueError, match="a was not scored on the same documents"):
        rank({"a": BEFORE[1:]}, BEFORE, WEIGHTS)
    lossy = {"a": scored(hi=1, en=1, is_lost=True)}
    with pytest.raises(ValueError, match="the tokenizer of a loses text of en"):
        rank(lossy, BEFORE, WEIGHTS)
    assert rank(lossy, BEFORE, {"hi": 1.0})
