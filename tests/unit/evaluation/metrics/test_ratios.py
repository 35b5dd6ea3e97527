"""Ratios of counts of lines."""

from __future__ import annotations

import numpy as np
import pytest

from vocabshift.evaluation.lines.counts import Counts, LineCounts
from vocabshift.evaluation.metrics.metric import OnText, Ratio, estimate
from vocabshift.evaluation.metrics.registry import METRICS


def _counts(**columns) -> LineCounts:
    """Two lines; what is not given is (1, 1)."""
    given = {name: columns.get(name, (1, 1)) for name in LineCounts.__slots__}
    return LineCounts(**{name: np.array(column) for name, column in given.items()})


COUNTS = _counts(
    n_tokens=(4, 6),
    n_single_character_tokens=(1, 2),
    n_bytes=(10, 20),
    n_characters=(5, 10),
    n_words=(2, 3),
    n_fragmented_words=(1, 3),
    n_superword_tokens=(0, 5),
    n_unknown_tokens=(1, 0),
    n_lost_characters=(3, 0),
    is_lost=(1, 0),
    tokens_in_bin=[[4.0, 0, 0, 0, 0, 0], [3.0, 3.0, 0, 0, 0, 0]],
    words_in_bin=[[2, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0]],
)

VALUES = {
    "fertility": 2.0,
    "bytes_per_token": 3.0,
    "characters_per_token": 1.5,
    "tokens_per_character": 10 / 15,
    "sequence_reduction": 20 / 30,
    "single_character_rate": 0.3,
    "normalized_sequence_length": 0.5,
    "word_fragmentation_rate": 0.8,
    "superword_rate": 0.5,
    "unk_rate": 0.1,
    "loss_rate": 0.5,
    "character_loss_rate": 0.2,
    "fertility_bin_1_10": 7 / 3,
    "fertility_bin_11_100": 1.5,
}


def _on(base: LineCounts | None = None) -> OnText:
    def counts(lines: LineCounts) -> Counts:
        return Counts(lines, np.zeros(0, np.int32), np.zeros(1, np.int64))

    return OnText(
        counts(COUNTS),
        lambda: np.zeros(0, np.int64),
        row_count=9,
        vocab_size=9,
        renyi_alpha=2.5,
        base_counts=None if base is None else counts(base),
    )


@pytest.mark.parametrize("name", VALUES)
def test_definitions(name: str) -> None:
    """Every metric is the ratio of sums over lines, not the mean of ratios."""
    formula = METRICS[name].formula
    assert isinstance(formula, Ratio)
    (found,) = estimate([formula.terms(_on(_counts(n_tokens=(13, 7))))])
    assert pytest.approx(VALUES[name]) == found.value


def test_a_base_is_needed() -> None:
    """A comparison without a base is refused."""
    formula = METRICS["normalized_sequence_length"].formula
    assert isinstance(formula, Ratio)
    with pytest.raises(ValueError, match="base"):
        formula.terms(_on())
