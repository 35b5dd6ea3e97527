"""Real text through the whole corridor: what was trained is what the file does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend

from real_text import eval_lines, mixture
from vocabshift import _core
from vocabshift.checks.check import check
from vocabshift.text.corpus import Corpus
from vocabshift.text.writing import TERMINALS
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.workflows.train import train_to_folder

pytestmark = pytest.mark.shared


@dataclass(frozen=True)
class Run:
    folder: Path
    corpus: Corpus
    lines: list[str]
    result: dict[str, Any]
    options: dict[str, Any]


@pytest.fixture(
    scope="module",
    params=[(1, 8_000), pytest.param((20, 32_000), marks=[pytest.mark.slow, pytest.mark.nightly])],
    ids=["1 MB", "20 MB"],
)
def ist(
    request: pytest.FixtureRequest, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """An IST tokenizer of the shared text, trained with two threads."""
    megabytes, vocab_size = request.param
    folder = tmp_path_factory.mktemp("ist")
    lines = mixture(shared_data, megabytes)
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    corpus = Corpus.from_files({"all": folder / "text.txt"})
    options = {"vocab_size": vocab_size}
    result = train_to_folder("ist", corpus, options, folder / "out", threads=2)
    return Run(folder / "out", corpus, [line.removesuffix("\r") for line in lines], result, options)


def test_as_many_merges_as_asked_for(ist: Run) -> None:
    size = ist.options["vocab_size"]
    assert size == ist.result["vocab_size"]
    assert round(0.9 * size) - 256 == ist.result["stage1_merges"]
    assert size - round(0.9 * size) == ist.result["stage2_merges"]


def test_training_tokens_and_text_come_back_from_the_file(ist: Run) -> None:
    """Every line by our encoder; blocks of lines from all over the text by `tokenizers` too."""
    backend = Backend.from_file(str(ist.folder / "tokenizer.json"))
    encoder = Encoder.from_pretrained(ist.folder)
    tokens = 0
    for at in range(0, len(ist.lines), 1024):
        lines = ist.lines[at : at + 1024]
        ids, offsets = encoder.encode_batch(lines, threads=2)
        assert lines == encoder.decode_batch(ids, offsets)
        tokens += len(ids)
        if at % (8 * 1024) == 0:
            encodings = backend.encode_batch(lines, add_special_tokens=False)
            assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    assert tokens == ist.result["training_tokens"]


def test_every_token_can_be_produced_and_none_spans_a_sentence_end(ist: Run) -> None:
    report = check(load_tokenizer(ist.folder))
    assert () == report.unreachable
    assert () == report.unreachable_by_pipeline
    assert () == report.terminal_spanning
    terminals = "".join(TERMINALS.values())
    spanning = re.compile(rf"[{terminals}][^{terminals}]|\.\s")
    for token in load_tokenizer(ist.folder).model.vocab:
        assert not spanning.search(byte_level.to_bytes(token).decode(errors="ignore"))


def test_digits_stand_in_groups_of_three_at_most(ist: Run) -> None:
    for token in load_tokenizer(ist.folder).model.vocab:
        text = byte_level.to_bytes(token).decode(errors="ignore")
        numbers = sum(bool(_core.char_class(ord(character)) & 16) for character in text)
        assert numbers <= 3
        assert numbers in (0, len(text))


def test_one_thread_writes_the_same_bytes(ist: Run, tmp_path: Path) -> None:
    train_to_folder("ist", ist.corpus, ist.options, tmp_path / "out", threads=1)
    names = sorted(file.name for file in ist.folder.iterdir())
    assert names == sorted(file.name for file in (tmp_path / "out").iterdir())
    for name in names:
        assert (ist.folder / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name


def test_unseen_text_of_every_language(ist: Run, shared_data: Path) -> None:
    encoder = Encoder.from_pretrained(ist.folder)
    for name, lines in eval_lines(shared_data, 20_000).items():
        encodings = encoder.tokenizer.backend.encode_batch(lines, add_special_tokens=False)
        ids, offsets = encoder.encode_batch(lines)
        assert [i for encoding in encodings for i in encoding.ids] == ids.tolist(), name
        assert lines == encoder.decode_batch(ids, offsets), name
