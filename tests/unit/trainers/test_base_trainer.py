"""What all trainers share: the clock, the configuration and the checks."""

from __future__ import annotations

import pytest

from vocabshift.progress import peak_rss_bytes
from vocabshift.storage.outcome import config_hash
from vocabshift.trainers.base import (
    Stopwatch,
    check_positive,
    check_vocab_size,
    config_of,
)
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.superword import SuperwordTrainer


def test_a_configuration_is_plain_json() -> None:
    config = config_of(SuperwordTrainer(vocab_size=400, special_tokens=("<s>",)))
    assert "ist" == config["recipe"]
    assert 400 == config["vocab_size"]
    assert ["<s>"] == config["special_tokens"]
    assert config["max_words"] is None


def test_a_hash_is_sixteen_hex_digits_and_stays() -> None:
    value = config_hash(config_of(BpeTrainer(vocab_size=300)))
    assert 16 == len(value)
    assert int(value, 16) >= 0
    assert value == config_hash(config_of(BpeTrainer(vocab_size=300)))


def test_phases_are_timed_in_order() -> None:
    watch = Stopwatch()
    with watch.phase("one"):
        pass
    with watch.phase("two"):
        pass
    assert ["one", "two"] == [phase.name for phase in watch.phases]
    assert all(phase.seconds >= 0 for phase in watch.phases)
    assert peak_rss_bytes() >= watch.phases[0].peak_rss_bytes > 1 << 20


def test_a_phase_that_fails_is_not_counted() -> None:
    watch = Stopwatch()
    with pytest.raises(ValueError, match="no"), watch.phase("one"):
        raise ValueError("no")
    assert [] == watch.phases


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", 1 << 64])
def test_positive_whole_numbers(value: object) -> None:
    with pytest.raises(ValueError, match="max_words"):
        check_positive("max_words", value)  # type: ignore[arg-type]


def test_a_vocabulary_beyond_all_ids() -> None:
    with pytest.raises(ValueError, match="at most 16777216"):
        check_vocab_size(10**12)


def test_allowed_values() -> None:
    check_positive("max_words", None)
    check_positive("max_words", 1)
    check_vocab_size(256)
    check_vocab_size(10, n_fixed=10)
