"""Packed ids are the ids of `tokenizers`, document by document, with the EOS between them."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from strategies import text as texts
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.text import documents
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.superword import SuperwordTrainer

# Written for this test.
DOCUMENTS = [
    "the boat is on the river. the river is long, and the boat is old!",
    "नाव नदी में है। नदी लंबी है॥ नाव पुरानी है।",
    "ஆறு நீளமானது. படகு பழையது.",
]

TRAINERS = {
    "core": SuperwordTrainer(vocab_size=420, transition=0.75),
    "core behind tokenizers": BpeTrainer(vocab_size=360, normalizer="nfkc"),
    "tokenizers": BpeTrainer(vocab_size=300, pre_tokenizer="gpt2"),
}


@functools.cache
def trained(engine: str) -> Tokenizer:
    """One tokenizer for each way in which an encoder may run."""
    tokenizer = TRAINERS[engine].train(Corpus.from_texts(DOCUMENTS))
    first = tokenizer.row_count
    word = AddedToken("river", first + 1, special=False, single_word=engine == "tokenizers")
    tokenizer = replace(tokenizer, added_tokens=(AddedToken("</s>", first), word))
    assert engine == Encoder(tokenizer).engine
    return tokenizer


def peer(tokenizer: Tokenizer, text: str, *, parse_special: bool) -> list[int]:
    backend = tokenizer.backend
    backend.encode_special_tokens = not parse_special
    ids = list(backend.encode(text, add_special_tokens=False).ids)
    backend.encode_special_tokens = False
    return ids


@pytest.mark.parametrize("engine", TRAINERS)
@examples(30)
@given(
    st.lists(st.one_of(texts, st.sampled_from(["</s>", "a river</s>", *DOCUMENTS])), max_size=12),
    st.sampled_from(["</s>", "a", None]),
    st.sampled_from(["numpy", "arrow"]),
    st.integers(1, 300),
    st.integers(1, 4000),
    st.booleans(),
)
def test_packed_ids_are_those_of_tokenizers(
    engine: str,
    lines: list[str],
    eos: str | None,
    form: str,
    shard_tokens: int,
    block_bytes: int,
    parse_special: bool,
) -> None:
    """Whatever the shards, the blocks in which the text comes, and the number of threads."""
    tokenizer = trained(engine)
    lines = ["first", *(line for line in lines if line)]
    end = [] if eos is None else [tokenizer.backend.token_to_id(eos)]
    expected = [peer(tokenizer, line, parse_special=parse_special) + end for line in lines]
    options = PackOptions(
        eos=eos, format=form, shard_tokens=shard_tokens, parse_special=parse_special
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents.pack, "__kwdefaults__", {"block_bytes": block_bytes})
        out = Path(folder) / "out"
        pack_corpus(tokenizer, Corpus.from_texts(lines), out, options, threads=1 + len(lines) % 3)
        packed = PackedIds.open(out)
        assert expected == [packed.document(i).tolist() for i in range(len(packed))]
        stream = [token_id for row in expected for token_id in row]
        assert stream == packed.tokens(0, packed.n_tokens).tolist()
        assert [len(line.encode()) for line in lines] == packed.document_bytes.tolist()
        shards = packed.header["shards"]
        assert all(shard["n_tokens"] >= shard_tokens for shard in shards[:-1])
