"""Continued BPE of SentencePiece BPE tokenizers: options, small cases and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from metaspace_training import learn_metaspace
from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.extension.continued import extended
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import SentencePieceRules
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.formats.sentencepiece import Piece, PieceType, Settings, from_pieces
from vocabshift.tokenizer.metaspace_reader import GroupCutter, ceilings
from vocabshift.tokenizer.tokenizer import Tokenizer

MakeTokenizer = Callable[..., Tokenizer]


def model(*texts: str, prefix: bool = True) -> Tokenizer:
    """A vocabulary of these pieces, with byte fallback."""
    pieces = [
        Piece("<unk>", 0.0, PieceType.UNKNOWN),
        *[Piece(f"<0x{byte:02X}>", 0.0, PieceType.BYTE) for byte in range(256)],
        *[Piece(text, -float(i)) for i, text in enumerate(texts)],
    ]
    settings = Settings(
        roles={"unk": 0},
        byte_fallback=True,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=False,
    )
    return from_pieces(pieces, settings)


def test_merges_keep_to_words_scripts_and_digits() -> None:
    """No product has an inner space, two scripts or a digit; runs of spaces are one."""
    base = model("▁", *"abяб12", prefix=False)
    corpus = Corpus.from_texts(["ab ab", "ab", "abяб", "12 12", "a    "])
    learned = learn_metaspace(base, corpus, n_tokens=50)
    assert learned.tokens == ("ab", "▁▁", "▁ab", "яб", "▁▁▁▁")
    assert learned.counts == (4, 3, 1, 1, 1)
    assert learned.stopped_because == "no_pair_left"


def test_rules_are_the_models_own_unless_given() -> None:
    """A tokenizer brings the rules of its SentencePiece model; an argument stands above them."""
    base = replace(model("▁", *"ab1"), piece_rules=SentencePieceRules(max_length=2))
    corpus = Corpus.from_texts(["abab"])
    assert set(learn_metaspace(base, corpus, n_tokens=9).tokens) == {"ab"}
    given = SentencePieceRules(max_length=3, split_digits=False)
    assert set(learn_metaspace(base, corpus, n_tokens=9, rules=given).tokens) == {"ab", "▁ab"}


def test_missing_characters_come_first_and_are_not_counted() -> None:
    """Most frequent first; with their merges behind, and the normalizer only for training."""
    base = model("▁", "a", prefix=False)
    corpus = Corpus.from_texts(["aéaé ñ ⅳ"])
    learned = learn_metaspace(base, corpus, n_tokens=1, add_characters=1.0)
    assert learned.characters == ("é", "ñ", "ⅳ")
    assert learned.tokens == ("é", "ñ", "ⅳ", "aé")
    assert extended(base, learned).model.vocab["aé"] == base.row_count + 3
    normalized = learn_metaspace(base, corpus, n_tokens=1, add_characters=1.0, normalizer="nfkd")
    assert set(normalized.characters) == {"e", "n", "i", "v", "\u0301", "\u0303"}
    assert learn_metaspace(base, corpus, n_tokens=1, add_characters=None).tokens == ()


def test_weights_count() -> None:
    """A document that counts more makes the first merge."""
    base = model("▁", *"abcd", prefix=False)
    texts = {"x": ["ab"] * 3, "y": ["cd"] * 2}
    assert learn_metaspace(base, Corpus.from_texts(texts), n_tokens=1).tokens == ("ab",)
    weighted = Corpus.from_texts(texts, weights={"y": 2.0})
    assert learn_metaspace(base, weighted, n_tokens=1).tokens == ("cd",)


def test_one_string_in_two_segmentations() -> None:
    """Groups are told apart by their ids: "ab" stands as "ab" and as "a" + "b" behind an added
    token that ends inside of it."""
    base = model("▁", *"abc", "ab", prefix=False)
    base = replace(base, added_tokens=(*base.added_tokens, AddedToken("<x>", 999)))
    learned = learn_metaspace(base, Corpus.from_texts(["abc<x>abc", "<x>bc"]), n_tokens=2)
    assert learned.merges == (("ab", "c"), ("b", "c"))
    longer = extended(base, learned)
    assert longer.backend.encode("abc<x>bc").ids == [
        longer.model.vocab["abc"],
        999,
        longer.model.vocab["bc"],
    ]


def test_ids_with_holes() -> None:
    """Places of training are not ids."""
    dense = model("▁", *"ab", prefix=False)
    vocab = {token: 3 * token_id for token, token_id in dense.model.vocab.items()}
    base = replace(
        dense,
        model=replace(dense.model, vocab=vocab),
        added_tokens=(AddedToken("<unk>", 0),),
    )
    learned = learn_metaspace(base, Corpus.from_texts(["ab ab"]), n_tokens=2)
    assert learned == learn_metaspace(dense, Corpus.from_texts(["ab ab"]), n_tokens=2)
    assert extended(base, learned).model.vocab["ab"] == base.row_count


def test_ceilings_by_language() -> None:
    """Bytes per group: words here, single characters where every one is a digit."""
    base = model("▁", *"ab12")
    corpus = Corpus.from_texts({"x": ["ab ab"], "y": ["1212"]})
    assert ceilings(base, corpus) == {"x": 5 / 2, "y": 4 / 5}


def test_rules_beside_a_tokenizer_json(tmp_path: Path) -> None:
    """They are read from the .model in the folder; a file that is something else is left alone."""
    base = model("▁", *"ab")
    base.save_pretrained(tmp_path / "t")
    assert load_tokenizer(tmp_path / "t").piece_rules is None
    beside = tmp_path / "t" / "tokenizer.model"
    spec = bytes([0xA0, 1, 5, 0xC8, 1, 1])  # max_sentencepiece_length 5, split_digits
    beside.write_bytes(b"\x0a\x03\x0a\x01a" + bytes([0x12, len(spec)]) + spec)
    assert load_tokenizer(tmp_path / "t").piece_rules == SentencePieceRules(
        max_length=5, split_digits=True, whitespace_only=False
    )
    for junk in (b"", b"\n", b"IQ== 0\n", beside.read_bytes()[:-1]):
        beside.write_bytes(junk)
        assert load_tokenizer(tmp_path / "t").piece_rules is None


def test_what_cannot_be_extended(make_byte_level: MakeTokenizer) -> None:
    """A byte-level tokenizer, a share that is none, and text that the normalizer removes."""
    corpus = Corpus.from_texts({"x": ["ab"], "y": ["éé"]})
    with pytest.raises(ValueError, match="does not spell the space"):
        learn_metaspace(make_byte_level("ab"), corpus, n_tokens=1)
    base = model("▁", *"ab")
    with pytest.raises(ValueError, match="character coverage is 0"):
        learn_metaspace(base, corpus, n_tokens=1, add_characters=0)
    with pytest.raises(ValueError, match="max_length is 0"):
        SentencePieceRules(max_length=0)
    removing = {"type": "Replace", "pattern": {"Regex": "[^a-z]"}, "content": ""}
    with pytest.raises(CorpusError, match="leaves nothing of 'y'"):
        learn_metaspace(replace(base, normalizer=removing), corpus, n_tokens=1)


def test_an_empty_token_is_a_group_by_itself() -> None:
    """Merged with "a" it would make "a", without end."""
    groups = _core.TokenGroups(_core.PieceRule(), [b"a", b""], [])
    counter = _core.WordCounter(_core.PreTokenizer([]))
    groups.add_to(counter, np.array([0, 1, 0, 0], dtype=np.int32), np.array([0, 4]))
    found = {tuple(np.frombuffer(word, dtype=np.int32).tolist()) for word, _ in counter.words(0)}
    assert found == {(0,), (1,), (0, 0)}


def test_the_core_refuses_what_is_no_vocabulary() -> None:
    """Ids and offsets from outside are looked at before they are used."""
    groups = _core.TokenGroups(_core.PieceRule(), [b"a", b"b"], [1])
    counter = _core.WordCounter(_core.PreTokenizer([]))
    ids = np.array([0, 0, 1], dtype=np.int32)
    assert groups.count(ids, np.array([0, 2, 3])) == 2
    assert groups.add_to(counter, ids, np.array([0, 2, 3])) == 2
    assert sorted(count for _, count in counter.words(0)) == [1, 1]
    for wrong_ids, offsets in (
        ([0, 2], [0, 2]),
        ([-1], [0, 1]),
        ([0], [0, 2]),
        ([0, 0], [0, 2, 1]),
    ):
        with pytest.raises(ValueError, match=r"vocabulary|offsets"):
            groups.count(np.array(wrong_ids, dtype=np.int32), np.array(offsets))
    with pytest.raises(ValueError, match="vocabulary"):
        _core.TokenGroups(_core.PieceRule(), [b"a"], [1])
    words = _core.WordCounter(_core.PreTokenizer([]))
    words.add_words(b"abc", np.array([3]), np.array([1], dtype=np.uint64))
    with pytest.raises(ValueError, match="no group"):
        _core.continue_bpe(words, _core.WordWeights([1]), 3, None, [b"a"], [])
    with pytest.raises(ValueError, match="not UTF-8"):
        _core.count_characters(b"\xf4", np.array([0]), np.array([1]))


def test_a_cutter_tells_places(make_byte_level: MakeTokenizer) -> None:
    """Only tokenizers that spell the space "▁" have one."""
    assert GroupCutter(model("▁", "a")).names[-1] == "a"
    with pytest.raises(ValueError, match="does not spell"):
        GroupCutter(make_byte_level("a"))
