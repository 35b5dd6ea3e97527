"""SmolLM2, whose vocabulary lacks 21 bytes: pruned, extended, swapped; then transferred.

Only its tables are moved: the layers have no part in it. Texts come back as before, and no other
character is lost (found by trying, `reference.lost`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from reference import lost as slow
from vocabshift.checks.check import check
from vocabshift.demo import sample_texts
from vocabshift.surgery.report import TransferReport
from vocabshift.surgery.transfer import transfer_folder
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.superword import SuperwordTrainer
from vocabshift.workflows.adapt_tokenizer import adapt_to_folder
from vocabshift.workflows.extend import ExtensionOptions, extend_to_folder
from vocabshift.workflows.prune import prune_to_folder

pytest.importorskip("real_model", reason="the fixtures of a real model are not there")
pytestmark = pytest.mark.real

TABLE = "model.embed_tokens.weight"
LOST = {0x04, 0x06, 0x13, 0x14, 0x16, 0x1D}
TRIED = (*range(0x250), *slow.assigned()[0x250::331])
ODD = "a\x04b \x1d\x06 \U00040000 \U000f0000 é क्षत्रिय 👩‍👩‍👧"


@pytest.fixture(scope="module")
def tables(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's table alone, in bfloat16, with its tokenizer and config."""
    folder = tmp_path_factory.mktemp("real") / "tables"
    shutil.copytree(smollm2, folder, ignore=shutil.ignore_patterns("*.safetensors*"))
    with safe_open(smollm2 / "model.safetensors", "pt") as tensors:
        rows = tensors.get_tensor(TABLE).to(torch.bfloat16)
    save_file({TABLE: rows}, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_texts(sample_texts.beginnings(40))


@pytest.fixture(scope="module")
def lines(corpus: Corpus) -> list[str]:
    return [*(text for _, text in corpus.texts()), ODD]


def decoded(tokenizer: Tokenizer, texts: list[str]) -> list[str]:
    return tokenizer.decode_batch(*tokenizer.encode_batch(texts))


def table(folder: Path) -> torch.Tensor:
    with safe_open(folder / "model.safetensors", "pt") as tensors:
        return tensors.get_tensor(TABLE)


def moved(tables: Path, new: Path | Tokenizer, out: Path) -> tuple[Tokenizer, TransferReport]:
    """Transfer the tables; shared tokens keep their rows bit for bit."""
    report = transfer_folder(tables, new, out)
    old, written = load_tokenizer(tables), load_tokenizer(out)
    before, after = table(tables), table(out)
    pairs = [(i, old.vocab[t]) for t, i in written.vocab.items() if t in old.vocab]
    new_ids, old_ids = map(list, zip(*pairs, strict=True))
    assert torch.equal(after[new_ids], before[old_ids])
    assert bool(torch.isfinite(after).all())
    return written, report


def test_what_is_lost(smollm2: Path) -> None:
    """Six control characters of all that Unicode assigns; 15 of the 21 missing bytes lose none."""
    tokenizer = load_tokenizer(smollm2)
    report = check(tokenizer)
    assert len(report.missing_byte_pieces) == 21
    assert {int(name[2:], 16) for name in report.lost_characters} == LOST
    assert (len(report.never_bytes), report.unassigned_bytes) == (13, ("F1", "F2"))
    assert not report.ok
    assert slow.lost(tokenizer.backend, TRIED) == LOST


@pytest.mark.parametrize("complete", [False, True])
def test_pruned(
    tables: Path, corpus: Corpus, lines: list[str], tmp_path: Path, complete: bool
) -> None:
    small = tmp_path / "small"
    prune_to_folder(tables, corpus, small, vocab_size=29_152, complete_bytes=complete)
    new, report = moved(tables, small, tmp_path / "out")
    assert (new.vocab_size, report.rows) == (29_152, 29_152)
    check_texts(load_tokenizer(tables), new, lines, complete=complete)
    assert report.n_by_mean == (8 if complete else 0)


@pytest.mark.parametrize("complete", [False, True])
def test_extended(
    tables: Path, corpus: Corpus, lines: list[str], tmp_path: Path, complete: bool
) -> None:
    longer = tmp_path / "longer"
    options = ExtensionOptions(n_tokens=1_000, complete_bytes=complete)
    extend_to_folder(tables, corpus, options, longer)
    new, report = moved(tables, longer, tmp_path / "out")
    assert report.n_initialized == 1_000 + (8 if complete else 0)
    check_texts(load_tokenizer(tables), new, lines, complete=complete)


def test_adapted(tables: Path, corpus: Corpus, lines: list[str], tmp_path: Path) -> None:
    adapted = tmp_path / "adapted"
    adapt_to_folder(tables, corpus, adapted, n_tokens=500, complete_bytes=True)
    new, report = moved(tables, adapted, tmp_path / "out")
    assert (report.rows, report.n_initialized, report.n_by_mean) == (49_152, 500, 8)
    check_texts(load_tokenizer(tables), new, lines, complete=True)


def check_texts(old: Tokenizer, new: Tokenizer, lines: list[str], *, complete: bool) -> None:
    """Texts come back as before, or all of them; no character is lost that was not."""
    assert decoded(new, lines) == (lines if complete else decoded(old, lines))
    assert slow.lost(new.backend, TRIED) == (set() if complete else LOST)


def test_swapped(tables: Path, corpus: Corpus, lines: list[str], tmp_path: Path) -> None:
    """IST's tokenizer has all 256 bytes: the rows of 21 are the mean of the old rows."""
    new, report = moved(tables, SuperwordTrainer(vocab_size=3_000).train(corpus), tmp_path / "out")
    assert report.n_by_mean == 21
    assert report.lost_characters is not None
    assert (report.lost_characters.before, report.lost_characters.after) == (6, 0)
    assert decoded(new, lines) == lines
    assert slow.lost(new.backend, TRIED) == set()
    mean = table(tables).double().mean(0).to(torch.bfloat16)
    for byte in (0xC0, 0xF1, 0x04):
        assert torch.equal(table(tmp_path / "out")[new.vocab[byte_level.BYTE_IMAGES[byte]]], mean)
