"""Merges on real text, at night 32k on 10 MB: those of `tokenizers`, all of them, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_text import mixture
from reference.peer import merges_of_tokenizers
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED
from vocabshift.trainers.byte_level import BpeTrainer

pytestmark = pytest.mark.shared


@pytest.mark.parametrize(
    ("megabytes", "vocab_size", "pattern"),
    [
        (1, 8_000, "o200k"),
        pytest.param(3, 16_000, "gpt2", marks=pytest.mark.slow),
        pytest.param(10, 32_000, "o200k", marks=[pytest.mark.slow, pytest.mark.nightly]),
    ],
)
def test_merges(shared_data: Path, megabytes: int, vocab_size: int, pattern: str) -> None:
    lines = mixture(shared_data, megabytes)
    trainer = BpeTrainer(vocab_size=vocab_size, pre_tokenizer=pattern)
    merges = trainer.train(Corpus.from_texts(lines)).model.merges
    expected = merges_of_tokenizers(lines, NAMED[pattern], vocab_size)
    assert vocab_size - 256 == len(expected)
    assert expected == list(merges)
