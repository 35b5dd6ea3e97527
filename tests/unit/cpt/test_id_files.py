"""Files of token ids of other projects: read by slow readers, and by their own where installed."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference import id_files as slow
from vocabshift.cpt.id_files import read_idx, write_idx
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import FILE, PackedIds
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer

LINES = ["one", "deux mots", "तीन", "четыре слова здесь", "<|end|>x", "vi"]


@pytest.fixture(params=[False, True], ids=["16 bits", "32 bits"])
def tokenizer(request: Any, byte_tokenizer: Tokenizer) -> Tokenizer:
    """One id a byte; with an id beyond 16 bits for "vi"."""
    if not request.param:
        return byte_tokenizer
    far = AddedToken("vi", 70_000, special=True)
    return replace(byte_tokenizer, added_tokens=(*byte_tokenizer.added_tokens, far))


def pack(tokenizer: Tokenizer, out: Path, form: Any) -> PackedIds:
    """A folder of several shards."""
    options = PackOptions(eos="<|end|>", format=form, shard_tokens=20)
    pack_corpus(tokenizer, Corpus.from_texts(LINES), out, options)
    packed = PackedIds.open(out)
    assert len(packed.header["shards"]) > 1
    assert tokenizer.row_count - 1 in {
        int(i) for n in range(len(packed)) for i in packed.document(n)
    }
    return packed


def by_shard(packed: PackedIds) -> list[list[list[int]]]:
    """Documents of each shard, as our reader has them."""
    documents = [packed.document(i).tolist() for i in range(len(packed))]
    shards = []
    for shard in packed.header["shards"]:
        shards.append(documents[: shard["n_documents"]])
        documents = documents[shard["n_documents"] :]
    return shards


def test_megatron(tokenizer: Tokenizer, tmp_path: Path) -> None:
    packed = pack(tokenizer, tmp_path / "out", "megatron")
    files = sorted((tmp_path / "out").glob("*.idx"))
    assert by_shard(packed) == [slow.megatron(file.with_suffix("")) for file in files]
    wide = tokenizer.row_count > 2**16
    assert ("int32" if wide else "uint16") == packed.dtype.name == packed.header["dtype"]


@pytest.mark.parametrize("wrong", [-1, 70_000_000])
def test_ids_that_are_none(byte_tokenizer: Tokenizer, tmp_path: Path, wrong: int) -> None:
    """Megatron's int32 can be negative; Python would count such ids from the end."""
    far = AddedToken("vi", 70_000, special=True)
    tokenizer = replace(byte_tokenizer, added_tokens=(*byte_tokenizer.added_tokens, far))
    pack(tokenizer, tmp_path / "out", "megatron")
    file = tmp_path / "out" / "ids-00001.bin"
    ids = np.fromfile(file, "<i4")
    ids[0] = wrong
    ids.tofile(file)
    header = json.loads((tmp_path / "out" / FILE).read_text("utf-8"))
    header["shards"][1]["crc32"][file.name] = zlib.crc32(file.read_bytes())
    (tmp_path / "out" / FILE).write_text(json.dumps(header), "utf-8")
    with pytest.raises(CorpusError, match=f"holds the id {wrong}, not from 0 to 70000"):
        PackedIds.open(tmp_path / "out")


def test_nanotron(tokenizer: Tokenizer, tmp_path: Path) -> None:
    packed = pack(tokenizer, tmp_path / "out", "nanotron")
    files = sorted((tmp_path / "out").glob("*.ds"))
    assert by_shard(packed) == [slow.nanotron(file) for file in files]
    lines = (tmp_path / "out" / "ids-00000.ds.metadata").read_text("utf-8").split("\n")
    assert f"{tokenizer.name}|{packed.dtype.itemsize}" == lines[0]
    assert str(packed.header["shards"][0]["n_tokens"]) == lines[1]


@pytest.mark.filterwarnings("ignore")  # what these packages import
def test_megatron_core_reads_it(tokenizer: Tokenizer, tmp_path: Path) -> None:
    reader = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    packed = pack(tokenizer, tmp_path / "out", "megatron")
    for file, documents in zip(
        sorted((tmp_path / "out").glob("*.idx")), by_shard(packed), strict=True
    ):
        for mmap in (True, False):
            dataset = reader.IndexedDataset(str(file.with_suffix("")), mmap=mmap)
            assert documents == [dataset[i].tolist() for i in range(len(dataset))]
            assert list(range(len(documents) + 1)) == dataset.document_indices.tolist()
            assert documents[-1][1:] == dataset.get(len(documents) - 1, offset=1).tolist()


@pytest.mark.filterwarnings("ignore")
def test_we_read_what_megatron_core_writes(tmp_path: Path) -> None:
    """Documents of several sequences too."""
    writer = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    import torch

    for dtype in (np.uint16, np.int32):
        file = tmp_path / np.dtype(dtype).name
        builder = writer.IndexedDatasetBuilder(f"{file}.bin", dtype=dtype)
        builder.add_item(torch.tensor([1, 2, 3]))
        builder.add_item(torch.tensor([4]))
        builder.end_document()
        builder.add_document(torch.tensor([5, 6]), [2])
        builder.finalize(f"{file}.idx")
        found, offsets = read_idx(file.with_suffix(".idx"), "")
        assert (np.dtype(dtype), [0, 4, 6]) == (found, offsets.tolist())


@pytest.mark.filterwarnings("ignore")
def test_datatrove_reads_it(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """As nanotron does: rows of one token more than the length, none across files."""
    reader = pytest.importorskip("datatrove.utils.dataset")
    packed = pack(tokenizer, tmp_path / "out", "nanotron")
    rows = []
    for documents in by_shard(packed):
        stream = [token_id for document in documents for token_id in document]
        starts = [i for document in documents for i in range(len(document))]
        for at in range(0, len(stream) - 3, 4):
            rows.append((stream[at : at + 4], starts[at : at + 4]))
    dataset = reader.DatatroveFolderDataset(
        str(tmp_path / "out"),
        seq_len=3,
        filename_pattern="*.ds",
        recursive=False,
        token_size=packed.dtype.itemsize,
        return_positions=True,
    )
    assert [ids for ids, _ in rows] == [
        dataset[i]["input_ids"].tolist() for i in range(len(dataset))
    ]
    for number, (_, positions) in enumerate(rows):
        found = dataset[number]["positions"].tolist()
        # A row begins at 0, wherever in its document it begins.
        first = positions.index(0) if 0 in positions else len(positions)
        assert list(range(first)) + positions[first:] == found


def idx(tmp_path: Path) -> bytes:
    write_idx(tmp_path / "x.idx", np.array([0, 3, 3, 7]), np.dtype("<u2"))
    return (tmp_path / "x.idx").read_bytes()


def put(data: bytes, at: int, kind: str, value: int) -> bytes:
    return data[:at] + struct.pack(kind, value) + data[at + struct.calcsize(kind) :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "no index of Megatron"),
        (lambda data: b"X" + data[1:], "no index of Megatron"),
        (lambda data: put(data, 9, "<Q", 2), "no index of Megatron"),
        (lambda data: data[:-1], "no index of Megatron"),
        (lambda data: put(data, 18, "<Q", 2**63), "no index of Megatron"),
        (lambda data: put(data, 17, "<B", 6), "dtype code 6, not integers"),
        (lambda data: put(data, 34, "<i", -3), "no index of Megatron"),
        (lambda data: put(data, 34 + 12, "<q", 2), "do not follow each other"),
        (lambda data: put(data, 34 + 36, "<q", 1), "no index of Megatron"),
        (lambda data: put(data, 34 + 36 + 8, "<q", 3), "no index of Megatron"),
        (lambda data: put(data, 34 + 36 + 24, "<q", 2), "no index of Megatron"),
    ],
)
def test_a_damaged_index(tmp_path: Path, change: Any, message: str) -> None:
    data = idx(tmp_path)
    assert [0, 3, 3, 7] == read_idx(tmp_path / "x.idx", "")[1].tolist()
    (tmp_path / "x.idx").write_bytes(change(data))
    with pytest.raises(CorpusError, match=f"{message}.*make it again"):
        read_idx(tmp_path / "x.idx", "make it again")


def test_differences_that_overflow(tmp_path: Path) -> None:
    """Documents that go up in steps of less than 2**63 and come back to their number."""
    lengths = np.arange(6)
    write_idx(tmp_path / "x.idx", lengths, np.dtype("<u2"))
    data = (tmp_path / "x.idx").read_bytes()
    at = 34 + 12 * 5
    for number, place in enumerate((0, 2**63 - 1, -(2**63), -(2**62), 0, 5)):
        data = put(data, at + 8 * number, "<q", place)
    (tmp_path / "x.idx").write_bytes(data)
    with pytest.raises(CorpusError, match="no index of Megatron"):
        read_idx(tmp_path / "x.idx", "")


def test_modes_at_the_end_of_an_index(tmp_path: Path) -> None:
    """Multimodal data sets have them."""
    data = idx(tmp_path)
    (tmp_path / "x.idx").write_bytes(data + bytes(3))
    assert [0, 3, 3, 7] == read_idx(tmp_path / "x.idx", "")[1].tolist()


def test_a_document_too_long_for_megatron(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2147483648 tokens is too long for Megatron"):
        write_idx(tmp_path / "x.idx", np.array([0, 2**31]), np.dtype("<u2"))
