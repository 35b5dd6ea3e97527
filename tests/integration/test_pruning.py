"""Pruning real tokenizers: the reference cases at every position, and all vendors to the bone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vocabshift.bpe.byte_level import ALPHABET
from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.load import load_tokenizer
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.pruning.prune import open_subject, prune, prune_subject, prune_with_report
from vocabshift.pruning.report import Pruning
from vocabshift.pruning.request import check_request
from vocabshift.text.corpus import Corpus

pytestmark = pytest.mark.shared

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
ORDERS = {
    "leaf-frequency": "leaf_frequency",
    "leaf-id": "leaf_last_n",
    "merge": "merge_based",
}
VENDORS = (
    *(f"tokenizers-hf/{name}" for name in ("llama3", "llama4", "mistral-nemo")),
    *(f"tokenizers-hf/{name}" for name in ("mistral7b-v1", "mistral7b-v3", "qwen25")),
    *(f"tokenizers/{name}" for name in ("anthropic-claude2", "deepseek", "llama2")),
    *(f"tokenizers/{name}" for name in ("cl100k_base", "o200k_base", "p50k_r50k")),
    *("tokenizers/gguf-command-r", "tokenizers/gguf-gemma-4"),
)


def case_corpus() -> Corpus:
    if not CASES.exists():
        pytest.skip("../shared/cases is not there")
    return Corpus.from_files({"eten": CASES / "inputs" / "eten.train.txt.zst"})


@pytest.fixture(scope="module")
def llama3(shared_data: Path) -> Tokenizer:
    return load_tokenizer(shared_data / "tokenizers-hf" / "llama3")


@pytest.mark.parametrize("order", ORDERS)
def test_reference_orders_at_every_position(llama3: Tokenizer, order: str) -> None:
    """Special tokens, bytes and "<0xNN>", which the reference prunes too, are taken out of its."""
    file = CASES / f"prune_llama3_eten_{ORDERS[order]}.ids.json.gz"
    corpus = case_corpus()
    vocab = llama3.model.vocab
    never = {token.id for token in llama3.added_tokens} | {vocab[image] for image in ALPHABET}
    with gzip.open(file, "rt") as stream:
        expected = [token_id for token_id in json.load(stream) if token_id not in never]
    assert len(expected) == 127_744
    pruning = prune_with_report(llama3, corpus, n_tokens=len(expected), order=order, measure=False)
    assert pruning.removed.tolist() == expected
    assert pruning.report.unreachable_before == 588


def test_unreachable_counts_of_the_paper(llama3: Tokenizer) -> None:
    """Table 4, column "ID (L*)", which needs no text."""
    found = {
        n: prune_with_report(llama3, n_tokens=n, order="leaf-id").report.unreachable_after
        for n in (1_000, 16_000)
    }
    assert found == {1_000: 551, 16_000: 136}


def test_unreachable_first_takes_exactly_these(llama3: Tokenizer) -> None:
    pruning = prune_with_report(
        llama3, n_tokens=588, order="leaf-id", unreachable_first=True, measure=False
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


def decoded(backend: Any, texts: list[str]) -> list[str]:
    ids = [encoding.ids for encoding in backend.encode_batch(texts, add_special_tokens=False)]
    return list(backend.decode_batch(ids, skip_special_tokens=False))


def bone(base: Tokenizer) -> Pruning:
    subject = open_subject(base)  # its splits are found once for both
    with pytest.raises(ValueError, match="can be") as error:
        prune_subject(subject, None, check_request("leaf-id", 10**6, None))
    most = int(str(error.value).split("at most ")[1].split(" ")[0].replace(",", ""))
    return prune_subject(subject, None, check_request("leaf-id", most, None))


@pytest.mark.parametrize("vendor", VENDORS)
def test_vendors_down_to_the_bone(
    shared_data: Path, texts: list[str], vendor: str, tmp_path: Path
) -> None:
    """Only bytes, characters and special tokens are left: every text comes back as before."""
    base = load_tokenizer(shared_data / vendor)
    pruning = bone(base)
    small = pruning.tokenizer
    assert isinstance(small, Tokenizer)
    assert small.model.merges == ()
    assert pruning.report.unreachable_after == 0
    assert decoded(small.backend, texts) == decoded(base.backend, texts)
    ids, offsets = Encoder(small).encode_batch(texts)
    for i, encoding in enumerate(small.backend.encode_batch(texts, add_special_tokens=False)):
        assert encoding.ids == ids[offsets[i] : offsets[i + 1]].tolist()

    old_added = sorted(base.added_tokens, key=lambda token: token.id)
    new_added = sorted(small.added_tokens, key=lambda token: token.id)
    assert [token.content for token in new_added] == [token.content for token in old_added]
    for old, new in zip(old_added, new_added, strict=True):
        assert pruning.id_map.old_to_new[old.id] == new.id
        for tokenizer, token in ((base, old), (small, new)):
            assert token.id in tokenizer.backend.encode(f"x{token.content}").ids
    mask = base.backend.encode("a").special_tokens_mask
    around = [t for t, m in zip(base.backend.encode("a").tokens, mask, strict=True) if m]
    again = load_tokenizer(small.save_pretrained(tmp_path / "out"))
    encoding = again.backend.encode("a")
    found = zip(encoding.tokens, encoding.special_tokens_mask, strict=True)
    assert [token for token, is_special in found if is_special] == around


@pytest.mark.parametrize("vendor", ["tokenizers-hf/llama3", "tokenizers-hf/mistral7b-v3"])
@pytest.mark.parametrize("keep_ids", [False, True])
def test_auto_tokenizer_reloads_the_same(
    shared_data: Path, texts: list[str], vendor: str, keep_ids: bool, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    base = load_tokenizer(shared_data / vendor)
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
