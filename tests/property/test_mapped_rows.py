"""Rows read from disk when asked for are the rows that packing all of it in memory makes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import MappedRows, PackedIds
from vocabshift.cpt.packing import draw, pack_ids
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

PART = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
BYTES = Tokenizer(
    BpeModel({image: i for i, image in enumerate(byte_level.ALPHABET)}, ()),
    pre_tokenizer=PART,
    decoder=PART,
    added_tokens=(AddedToken("<|end|>", 256),),
)


@examples(25)
@given(
    texts=st.lists(st.text("ab é", min_size=1, max_size=9), min_size=1, max_size=8),
    length=st.integers(2, 12),
    n_bytes=st.integers(1, 60),
    separator=st.sampled_from([(256,), (256, 0), (1, 2, 3)]),
    eos=st.sampled_from(["<|end|>", None]),
    shard_tokens=st.sampled_from([3, 1000]),
)
def test_rows_are_those_of_packing(texts, length, n_bytes, separator, eos, shard_tokens) -> None:
    """All rows at once, one by one, and in any order; bytes of rows too."""
    with tempfile.TemporaryDirectory() as place:
        options = PackOptions(eos=eos, shard_tokens=shard_tokens)
        pack_corpus(BYTES, Corpus.from_texts(texts), Path(place) / "p", options)
        packed = PackedIds.open(Path(place) / "p")
        chosen = draw(packed.document_bytes, n_bytes, seed=3)
        ids, offsets = packed.gather(chosen)
        sizes = packed.document_bytes[chosen]
        expected = pack_ids(ids, offsets, sizes, separator=separator, length=length)
        rows = MappedRows(packed, chosen, separator=separator, length=length)
        order = np.random.default_rng(0).permutation(len(expected.rows))
        assert rows.take(order).tolist() == expected.rows[order].tolist()
        assert rows.take(order[:1]).tolist() == expected.rows[order[:1]].tolist()
        assert rows.take(order[:0]).shape == (0, length + 1)
        assert rows.row_bytes.tolist() == expected.row_bytes.tolist()
        assert rows.n_bytes == expected.n_bytes


def test_refused(tmp_path: Path) -> None:
    pack_corpus(BYTES, Corpus.from_texts(["ab"]), tmp_path / "p")
    packed = PackedIds.open(tmp_path / "p")
    with pytest.raises(ValueError, match="at least 2 tokens"):
        MappedRows(packed, np.array([0]), separator=(256,), length=1)
    with pytest.raises(CorpusError, match="no document"):
        MappedRows(packed, np.array([], dtype=np.int64), separator=(256,), length=4)
