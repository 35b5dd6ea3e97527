"""Pruning real tokenizers: the reference cases at every position, and what transformers opens."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from real_text import vendor
from vendor_checks import decoded
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.byte_level import ALPHABET
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.prune import prune

pytestmark = pytest.mark.shared

ORDERS = {
    "leaf-frequency": "leaf_frequency",
    "leaf-id": "leaf_last_n",
    "merge": "merge_based",
}


@pytest.fixture
def case_corpus(reference_cases: Path) -> Corpus:
    return Corpus.from_files({"eten": reference_cases / "inputs" / "eten.train.txt.zst"})


@pytest.fixture(scope="module")
def llama3(shared_data: Path) -> Tokenizer:
    return vendor(shared_data / "tokenizers-hf" / "llama3")


@pytest.mark.parametrize("order", ORDERS)
def test_reference_orders_at_every_position(
    llama3: Tokenizer, order: str, reference_cases: Path, case_corpus: Corpus
) -> None:
    """Special tokens, bytes and "<0xNN>", which the reference prunes too, are taken out of its."""
    file = reference_cases / f"prune_llama3_eten_{ORDERS[order]}.ids.json.gz"
    vocab = llama3.model.vocab
    never = {token.id for token in llama3.added_tokens} | {vocab[image] for image in ALPHABET}
    with gzip.open(file, "rt") as stream:
        expected = [token_id for token_id in json.load(stream) if token_id not in never]
    assert len(expected) == 127_744
    pruning = prune_with_report(
        llama3, case_corpus, PruningOptions(n_tokens=len(expected), order=order), measure=False
    )
    assert pruning.removed.tolist() == expected
    assert pruning.report.unreachable_before == 588


def test_unreachable_counts_of_the_paper(llama3: Tokenizer) -> None:
    """Table 4, column "ID (L*)", which needs no text."""
    found = {
        n: prune_with_report(
            llama3, None, PruningOptions(n_tokens=n, order="leaf-id")
        ).report.unreachable_after
        for n in (1_000, 16_000)
    }
    assert found == {1_000: 551, 16_000: 136}


def test_unreachable_first_takes_exactly_these(llama3: Tokenizer) -> None:
    pruning = prune_with_report(
        llama3,
        None,
        PruningOptions(n_tokens=588, order="leaf-id", unreachable_first=True),
        measure=False,
    )
    assert pruning.report.unreachable_after == 0


@pytest.fixture(scope="module")
def texts(shared_data: Path) -> list[str]:
    """The first lines of every evaluation file."""
    lines: list[str] = []
    for file in sorted((shared_data / "eval").rglob("*.txt")):
        with file.open(encoding="utf-8") as stream:
            lines += [line.rstrip("\n") for line, _ in zip(stream, range(12), strict=False)]
    assert len(lines) > 400
    return [*lines, *("", "  a\n\n b\t", "\x00\x7f\u200d", "🏽👩‍👩‍👧", "e\u0301")]


@pytest.mark.parametrize(
    ("name", "keep_ids"),
    [
        ("tokenizers-hf/llama3", False),
        ("tokenizers-hf/mistral7b-v3", True),
        pytest.param("tokenizers-hf/llama3", True, marks=pytest.mark.nightly),
        pytest.param("tokenizers-hf/mistral7b-v3", False, marks=pytest.mark.nightly),
    ],
)
def test_auto_tokenizer_reloads_the_same(
    shared_data: Path, texts: list[str], name: str, keep_ids: bool, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    base = vendor(shared_data / name)
    size = base.vocab_size * 3 // 4
    small = prune(base, vocab_size=base.vocab_size - size, order="id", keep_ids=keep_ids)
    folder = small.save_pretrained(tmp_path / "out")
    auto = transformers.AutoTokenizer.from_pretrained(str(folder))
    ids = [encoding.ids for encoding in small.backend.encode_batch(texts)]
    assert auto(texts).input_ids == ids
    assert decoded(small.backend, texts) == decoded(base.backend, texts)
    bos = base.config["bos_token"]
    old, new = base.backend.token_to_id(bos), small.backend.token_to_id(bos)
    assert auto.bos_token_id == new
    assert (old == new) or not keep_ids
    used = np.unique(np.concatenate([np.array(row) for row in ids]))
    assert used.max() < small.row_count
