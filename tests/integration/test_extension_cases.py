"""The reference toolkit's own runs of continued BPE, met merge for merge."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from real_text import vendor
from vocabshift.extension.continued import TrainingBase, learn
from vocabshift.extension.counting import count_byte_level
from vocabshift.text.corpus import Corpus

pytestmark = pytest.mark.shared


@pytest.fixture
def estonian(reference_cases: Path) -> Corpus:
    """The text that the cases were made with; one line is one document."""
    file = reference_cases / "inputs" / "et.train.txt.zst"
    with zstandard.open(file, "rt", encoding="utf-8") as stream:
        return Corpus.from_texts({"et": stream.read().split("\n")})


def test_llama3_estonian(estonian: Corpus, shared_data: Path, reference_cases: Path) -> None:
    """16,000 tokens, their merges and counts are those of the paper's toolkit."""
    base = TrainingBase(vendor(shared_data / "tokenizers-hf" / "llama3"))
    with gzip.open(reference_cases / "cont_llama3_et.json.gz") as stream:
        case = json.load(stream)

    text = count_byte_level(base, estonian)
    learned = learn(base, text, n_tokens=16_000, tie_break="lexicographic")

    assert list(learned.tokens) == case["tokens"]
    assert [list(merge) for merge in learned.merges] == case["merges"]
    assert list(learned.counts) == case["freqs"]
