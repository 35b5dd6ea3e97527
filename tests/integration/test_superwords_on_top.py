"""Superwords on the vendors' own tokenizers, learned from a little real text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend

from real_text import vendor
from vendor_checks import vendor_param
from vocabshift.text.corpus import Corpus
from vocabshift.text.writing import TERMINALS
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.pretrained_folder import check_auto
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.on_top import SuperwordsOnTopTrainer
from vocabshift.workflows.train import train_to_folder

pytestmark = pytest.mark.shared

N_TOKENS = 400
TERMINAL = "".join(TERMINALS.values())
DIES = {"llama3": 588, "qwen25": 0, "mistral-nemo": 0}
"""Tokens that only merge skipping reaches."""


@dataclass(frozen=True)
class Run:
    base: Tokenizer
    new: Tokenizer
    folder: Path
    lines: dict[str, list[str]]
    result: dict[str, Any]


@pytest.fixture(
    scope="module",
    params=[vendor_param(name, name=name, is_nightly=name == "qwen25") for name in DIES],
)
def run(
    request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    lines: dict[str, list[str]] = {}
    for label in ("en", "hi", "ta", "code"):
        with (shared_data / "train" / f"{label}.txt").open(encoding="utf-8") as stream:
            lines[label] = [line.rstrip("\r\n") for line in islice(stream, 400)]
    corpus = Corpus.from_texts(lines)
    source = shared_data / "tokenizers-hf" / request.param
    folder = tmp_path_factory.mktemp("on-top") / request.param
    options = {"base": str(source), "n_tokens": N_TOKENS}
    result = train_to_folder("on-top", corpus, options, folder, threads=2)
    return Run(vendor(source), load_tokenizer(folder), folder, lines, result)


def test_the_ids_of_the_base_stay(run: Run) -> None:
    new = run.new
    assert run.base.model.vocab.items() <= new.model.vocab.items()
    assert run.base.added_tokens == new.added_tokens
    added = {token.content for token in run.base.added_tokens}
    learned = {
        token: i
        for token, i in new.model.vocab.items()
        if token not in run.base.model.vocab and token not in added
    }
    first = run.base.row_count
    assert list(range(first, first + N_TOKENS)) == sorted(learned.values())
    assert N_TOKENS == run.result["new_tokens"]
    assert not {*unreachable_tokens(new)} & {*learned}
    texts = [byte_level.to_bytes(token).decode(errors="ignore") for token in learned]
    assert not [text for text in texts if re.search(rf"[{TERMINAL}][^{TERMINAL}]|\.\s", text)]
    assert any(" " in text.strip() for text in texts)
    check_auto(run.folder)


def test_what_training_counted_is_what_the_file_gives(run: Run) -> None:
    backend = Backend.from_file(str(run.folder / "tokenizer.json"))
    texts = [text for lines in run.lines.values() for text in lines if text]
    encodings = backend.encode_batch(texts, add_special_tokens=False)
    assert run.result["training_tokens"] == sum(len(encoding.ids) for encoding in encodings)
    before = run.base.backend.encode_batch(texts, add_special_tokens=False)
    assert run.result["training_tokens"] < sum(len(encoding.ids) for encoding in before)
    normalizer = run.base.backend.normalizer
    expected = texts if normalizer is None else [normalizer.normalize_str(t) for t in texts]
    assert expected == [backend.decode(e.ids, skip_special_tokens=False) for e in encodings]


def test_the_boundaries_that_were_taken_change_least(run: Run) -> None:
    """The base's own pattern, lifted, changes nothing but what merge skipping alone reached."""
    assert "own" == run.result["stage2_pre_tokenizer"]
    name = run.folder.name
    assert DIES[name] == len(run.result["tokens_lost"])
    assert [*run.lines] == [*run.result["changed_lines"]] == [*run.result["changed_tokens"]]
    for candidate in run.result["candidates"]:
        assert candidate["tokens_lost"] >= DIES[name]
    assert max(run.result["changed_tokens"].values()) < 1e-4
    if not DIES[name]:
        assert {0.0} == {*run.result["changed_lines"].values()}


@pytest.mark.parametrize("name", ["mistral7b-v1", "mistral7b-v3"])
def test_a_sentencepiece_base_is_refused(name: str, shared_data: Path) -> None:
    with pytest.raises(ValueError, match=f"{name} is not byte-level"):
        SuperwordsOnTopTrainer(base=shared_data / "tokenizers-hf" / name, n_tokens=10)


def test_gemma_is_refused(shared_data: Path) -> None:
    file = shared_data / "tokenizers" / "gguf-gemma-4" / "ggml-vocab-gemma-4.gguf"
    with pytest.raises(ValueError, match="is not byte-level"):
        SuperwordsOnTopTrainer(base=file, n_tokens=10)
