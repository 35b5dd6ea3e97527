"""Packed ids as a `datasets.Dataset`: the stream in rows, mapped, with documents kept apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_dataset import packed_dataset
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.tokenizer import Tokenizer

pa = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("datasets")
pytest.importorskip("torch")

TEXTS = ["a", "some more", "", "x" * 40, "two", "short ones", "and a last document"]
LENGTH = 8


def pack(tokenizer: Tokenizer, place: Path, **options: Any) -> PackedIds:
    pack_corpus(tokenizer, Corpus.from_texts(TEXTS), place / "packed", PackOptions(**options))
    return PackedIds.open(place / "packed")


@pytest.mark.parametrize("form", ["numpy", "arrow"])
@pytest.mark.parametrize("eos", ["<|end|>", None])
@pytest.mark.parametrize("shard_tokens", [1, 12, 10_000])
def test_rows_are_the_stream(
    byte_tokenizer: Tokenizer, tmp_path: Path, form: str, eos: str | None, shard_tokens: int
) -> None:
    """In order, across shards of any size; the rest that fills no row is left out."""
    packed = pack(byte_tokenizer, tmp_path, format=form, eos=eos, shard_tokens=shard_tokens)
    stream = packed.tokens(0, packed.n_tokens).tolist()
    rows = packed_dataset(packed, LENGTH)
    assert rows["input_ids"][:] == rows["labels"][:]
    assert [*zip(*[iter(stream)] * LENGTH, strict=False)] == [*map(tuple, rows["input_ids"])]
    lengths = rows["seq_lengths"][:]
    assert [LENGTH] * len(rows) == [*map(sum, lengths)]
    n_eos = 0 if eos is None else 1
    ends = np.cumsum([len(text.encode()) + n_eos for text in TEXTS if text])
    edges = {*ends.tolist(), *range(0, len(stream) + 1, LENGTH)}
    expected = sorted(edge for edge in edges if 0 < edge <= len(rows) * LENGTH)
    assert expected == np.cumsum([each for row in lengths for each in row]).tolist()


def test_documents_are_kept_apart(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Positions begin again with every document and row, and its first token is no target."""
    packed = pack(byte_tokenizer, tmp_path, eos="<|end|>", shard_tokens=12)
    stream = packed.tokens(0, packed.n_tokens).tolist()
    rows = packed_dataset(packed, LENGTH, documents=True)
    position = -1
    for number, row in enumerate(rows):
        for place in range(LENGTH):
            index = number * LENGTH + place
            is_first = index == 0 or stream[index - 1] == 256 or place == 0
            position = 0 if is_first else position + 1
            assert stream[index] == row["input_ids"][place]
            assert position == row["position_ids"][place]
            assert (-100 if is_first else stream[index]) == row["labels"][place]


def test_nothing_is_copied(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """The column's values lie in the mapped file."""
    packed = pack(byte_tokenizer, tmp_path)
    ids = packed.tokens(0, packed.n_tokens)
    start = ids.__array_interface__["data"][0]
    for name in ("input_ids", "labels"):
        [chunk] = packed_dataset(packed, LENGTH).data.column(name).chunks
        assert start == chunk.values.buffers()[1].address
    assert pa.uint16() == chunk.type.value_type


def test_columns_may_be_removed_and_batches_made(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """What trainers do with a data set: remove columns, shuffle, select, iterate, set a format."""
    torch = pytest.importorskip("torch")
    packed = pack(byte_tokenizer, tmp_path, eos="<|end|>")
    rows = packed_dataset(packed, LENGTH, documents=True)
    assert {"input_ids"} == set(rows.remove_columns(["labels", "position_ids"])[0])
    assert {"position_ids", "labels"} == set(rows.remove_columns("input_ids")[0])
    [batch] = torch.utils.data.DataLoader(rows.select(range(3)), batch_size=3)
    assert (3, LENGTH) == tuple(batch["position_ids"].shape)
    assert torch.int64 == batch["input_ids"].dtype
    plain = packed_dataset(packed, LENGTH).shuffle(seed=1).with_format("torch")
    assert torch.int64 == plain[0]["input_ids"].dtype
    assert len(plain) == len([*packed_dataset(packed, LENGTH).to_iterable_dataset()])


def test_fingerprints(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    """`map` finds its cache again: they depend on the folder, the length and the kind."""
    packed = pack(byte_tokenizer, tmp_path)
    variants = [(LENGTH, False), (LENGTH, True), (LENGTH + 1, False)]
    made = [packed_dataset(packed, n, documents=which)._fingerprint for n, which in variants]
    assert 3 == len(set(made))
    assert made[0] == packed_dataset(tmp_path / "packed", LENGTH)._fingerprint


def test_refused(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    packed = pack(byte_tokenizer, tmp_path)
    with pytest.raises(ValueError, match="at least 2"):
        packed_dataset(packed, 1)
    with pytest.raises(CorpusError, match="fewer than one row of 1000"):
        packed_dataset(packed, 1000)
