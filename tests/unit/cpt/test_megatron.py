"""Megatron's data sets, whoever wrote them, as packed ids of a tokenizer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vocabshift.cpt import megatron
from vocabshift.cpt.id_files import write_ids, write_idx
from vocabshift.cpt.megatron import megatron_files, open_megatron
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.tokenizer import Tokenizer

LINES = ["one", "deux mots", "तीन", "четыре слова здесь", "vi"]
END = "<|end|>"


@pytest.fixture
def tokenizer(byte_tokenizer: Tokenizer) -> Tokenizer:
    return replace(byte_tokenizer, config={"eos_token": END})


def put(file: Path, documents: list[list[int]], dtype: str = "<u2") -> Path:
    offsets = np.cumsum([0, *map(len, documents)])
    flat = np.array([token_id for ids in documents for token_id in ids], dtype=dtype)
    write_ids(file.with_suffix(".bin"), [flat], np.dtype(dtype))
    write_idx(file, offsets, np.dtype(dtype))
    return file


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
@pytest.mark.parametrize("eos", [END, None])
def test_it_is_read_as_our_own_folder(
    tokenizer: Tokenizer,
    tmp_path: Path,
    eos: str | None,
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ids, ends of documents, and the bytes of their text."""
    monkeypatch.setattr(megatron, "_BLOCK", block)
    options = PackOptions(eos=eos, format="megatron", shard_tokens=20)
    pack_corpus(tokenizer, Corpus.from_texts(LINES), tmp_path / "ours", options)
    ours = PackedIds.open(tmp_path / "ours")
    (tmp_path / "ours" / "packed.json").unlink()
    files = megatron_files([str(tmp_path / "ours")])
    assert len(files) == len(ours.header["shards"]) > 1
    theirs = open_megatron(files, tokenizer)
    assert [ours.document(i).tolist() for i in range(len(ours))] == [
        theirs.document(i).tolist() for i in range(len(theirs))
    ]
    assert ours.document_bytes.tolist() == theirs.document_bytes.tolist()
    assert ours.document_tokens.tolist() == theirs.document_tokens.tolist()
    assert (ours.eos_id, ours.n_bytes, ours.dtype) == (theirs.eos_id, theirs.n_bytes, theirs.dtype)
    theirs.require(tokenizer)
    names = [sorted(shard["crc32"]) for shard in theirs.header["shards"]]
    assert [["ids-00000.bin", "ids-00000.idx"], ["ids-00001.bin", "ids-00001.idx"]] == names[:2]


def test_documents_without_tokens(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """They have no end that the EOS could be."""
    end = tokenizer.token_id(END)
    packed = open_megatron([put(tmp_path / "a.idx", [[], [5, 6, end], [], [end], []])], tokenizer)
    assert (5, None) == (len(packed), packed.eos_id)
    assert [0, 2 + len(END), 0, len(END), 0] == packed.document_bytes.tolist()
    packed = open_megatron([put(tmp_path / "b.idx", [[5, 6, end], [end]], "<i4")], tokenizer)
    assert (end, [2, 0]) == (packed.eos_id, packed.document_bytes.tolist())
    mixed = open_megatron([put(tmp_path / "d.idx", [[5, 6, end], [7]])], tokenizer)
    assert (None, [3, 1]) == (mixed.eos_id, mixed.document_tokens.tolist())
    empty = open_megatron([put(tmp_path / "c.idx", [])], tokenizer)
    assert (0, 0) == (len(empty), empty.n_bytes)


def test_what_names_megatron_files(tmp_path: Path) -> None:
    for name in ("b.idx", "a.idx", "text.txt"):
        (tmp_path / name).touch()
    assert [tmp_path / "a.idx", tmp_path / "b.idx"] == megatron_files([str(tmp_path)])
    assert [Path("b.idx"), Path("a.idx")] == megatron_files(["b.idx", "a.idx"])
    assert [] == megatron_files(["a.idx", "text.txt"])
    (tmp_path / "packed.json").touch()
    assert [] == megatron_files([str(tmp_path)])


def test_files_that_cannot_be_these_documents(tokenizer: Tokenizer, tmp_path: Path) -> None:
    good = put(tmp_path / "good.idx", [[1, 2], [3]])
    for token_id in (tokenizer.row_count, -1):
        other = put(tmp_path / "other.idx", [[token_id]], "<i4")
        with pytest.raises(
            VocabMismatchError, match=rf"the id {token_id}, and the tokenizer .*257"
        ):
            open_megatron([other], tokenizer)
    with pytest.raises(CorpusError, match=r"wide\.idx holds int32 and .*good.idx uint16"):
        open_megatron([good, put(tmp_path / "wide.idx", [[1]], "<i4")], tokenizer)
    (tmp_path / "good.bin").write_bytes(b"12")
    with pytest.raises(CorpusError, match=r"good.bin holds 1 tokens, and .*good.idx says 3"):
        open_megatron([good], tokenizer)
    (tmp_path / "good.bin").write_bytes(b"12345")
    with pytest.raises(CorpusError, match=r"good.bin is cut short: 5 bytes of uint16"):
        open_megatron([good], tokenizer)
    (tmp_path / "good.bin").unlink()
    with pytest.raises(CorpusError, match=r"good.bin cannot be read \(No such file"):
        open_megatron([good], tokenizer)
