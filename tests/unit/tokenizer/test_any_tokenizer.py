"""AnyTokenizer: the three kinds answer alike, and nobody asks which class a tokenizer has."""

from __future__ import annotations

import inspect
import itertools
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vocabshift
from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.any_tokenizer import (
    AnyTokenizer,
    ids_of_tokens,
    ids_without,
    tokens_by_id,
)
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram import Scored, unigram_tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

TEXTS = ["ab ab<sep>b", "", "ba"]


def bpe() -> Tokenizer:
    vocab = {token: i for i, token in enumerate(["<unk>", "a", "b", " ", "ab", "ba", "aba"])}
    model = BpeModel(vocab, (("a", "b"), ("b", "a"), ("ab", "a")), unk_token="<unk>")
    added = (AddedToken("<sep>", 7, special=False),)
    return Tokenizer(model, decoder={"type": "Fuse"}, added_tokens=added, name="bpe")


def unigram() -> UnigramOrWordPieceTokenizer:
    lone = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = ("<unk>", *lone, "▁", "a", "b", "ab", "ba")
    made = unigram_tokenizer(
        Scored(pieces, (0.0, *[-20.0] * 256, -3.0, -4.0, -4.0, -5.0, -9.0)),
        normalizer=None,
        name="unigram",
    )
    return made.with_added([AddedToken("<sep>", len(pieces), special=False)])


def wordpiece() -> UnigramOrWordPieceTokenizer:
    tokens = ["[UNK]", "a", "b", "##a", "##b", "ab", "##ab"]
    document = {
        "added_tokens": [
            {"id": 0, "content": "[UNK]", "special": True} | dict.fromkeys(FLAGS, False),
            {"id": 7, "content": "<sep>", "special": False} | dict.fromkeys(FLAGS, False),
        ],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: i for i, token in enumerate(tokens)},
        },
    }
    return UnigramOrWordPieceTokenizer.from_json(document, name="wordpiece")


FLAGS = ("normalized", "single_word", "lstrip", "rstrip")
KINDS: dict[str, Callable[[], AnyTokenizer]] = {
    "BPE": bpe,
    "Unigram": unigram,
    "WordPiece": wordpiece,
}


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> AnyTokenizer:
    made = KINDS[request.param]()
    assert made.kind == request.param
    return made


@pytest.mark.parametrize("make", [unigram, wordpiece])
def test_a_model_of_an_old_file_names_no_type(
    make: Callable[[], UnigramOrWordPieceTokenizer],
) -> None:
    """Its other keys say what it is, and it is written with its type."""
    whole = make()
    old = json.loads(json.dumps(whole.document))
    del old["model"]["type"]
    read = UnigramOrWordPieceTokenizer.from_json(json.dumps(old))
    assert read.kind == whole.kind
    assert read.document == whole.document


@pytest.mark.parametrize(
    ("make", "key", "value", "message"),
    [
        (unigram, "vocab", {"a": 0}, "no list of tokens with scores"),
        (unigram, "vocab", [], "no list of tokens with scores"),
        (unigram, "vocab", [["a", "0"]], "no list of tokens with scores"),
        (unigram, "vocab", [["a", float("nan")]], "no list of tokens with scores"),
        (unigram, "vocab", [["a", 10**400]], "no list of tokens with scores"),
        (unigram, "vocab", [["a", 0.0], ["a", -1.0]], "lists a token twice"),
        (unigram, "unk_id", 1000, "unk_id is 1000, which is no token"),
        (unigram, "unk_id", True, "unk_id is True, which is no token"),
        (wordpiece, "vocab", [], "no object of tokens and ids"),
        (wordpiece, "vocab", {"[UNK]": "0"}, "no object of tokens and ids"),
        (wordpiece, "vocab", {"[UNK]": 0, "a": 0}, "two tokens one id, or an id out of range"),
        (wordpiece, "vocab", {"[UNK]": -1}, "two tokens one id, or an id out of range"),
        (wordpiece, "vocab", {"[UNK]": 2**32}, "two tokens one id, or an id out of range"),
        (wordpiece, "unk_token", "nowhere", "unk_token 'nowhere' is no token"),
        (wordpiece, "unk_token", None, "unk_token None is no token"),
        (wordpiece, "continuing_subword_prefix", 7, "continuing_subword_prefix is no text"),
        (wordpiece, "type", "WordLevel", "of type 'WordLevel'; prune takes"),
    ],
)
def test_an_unsound_model_is_refused(
    make: Callable[[], UnigramOrWordPieceTokenizer], key: str, value: Any, message: str
) -> None:
    document = json.loads(json.dumps(make().document))
    document["model"][key] = value
    with pytest.raises(InvalidTokenizerError, match=re.escape(message)):
        UnigramOrWordPieceTokenizer.from_json(document)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, "there is no `model` object"),
        ({"merges": []}, "of type 'BPE'"),
        ({"vocab": {"a": 0}}, "of type 'unknown'"),
    ],
)
def test_a_file_without_a_model_of_these_kinds(model: Any, message: str) -> None:
    with pytest.raises(InvalidTokenizerError, match=re.escape(message)):
        UnigramOrWordPieceTokenizer.from_json({"model": model})


def test_every_member_is_there(tokenizer: AnyTokenizer) -> None:
    members = {name for name in vars(AnyTokenizer) if not name.startswith("_")}
    assert len(members) >= 25
    for name in members:
        assert hasattr(tokenizer, name), name
        expected = vars(AnyTokenizer)[name]
        if callable(expected):
            asked = list(inspect.signature(expected).parameters.values())[1:]
            given = list(inspect.signature(getattr(tokenizer, name)).parameters.values())
            assert [(p.name, p.kind, p.default) for p in asked] == [
                (p.name, p.kind, p.default) for p in given
            ], name


def test_ids_are_those_of_tokenizers(tokenizer: AnyTokenizer) -> None:
    ids, offsets = tokenizer.encode_batch(TEXTS)
    assert (ids.dtype, offsets.dtype) == (np.int32, np.int64)
    expected = [tokenizer.backend.encode(text, add_special_tokens=False).ids for text in TEXTS]
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())] == expected
    data = "".join(TEXTS).encode()
    ends = np.cumsum([len(text) for text in TEXTS])
    documents = tokenizer.encode_documents(data, ends - [len(text) for text in TEXTS], ends)
    assert documents[0].tolist() == ids.tolist()
    assert documents[1].tolist() == offsets.tolist()


def test_more_texts_than_are_encoded_at_once() -> None:
    texts = [f"ab b{'a' * (number % 7)}" for number in range(2003)]
    made = unigram()
    ids, offsets = made.encode_batch(texts)
    expected = [made.backend.encode(text, add_special_tokens=False).ids for text in texts]
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())] == expected


def test_no_documents(tokenizer: AnyTokenizer) -> None:
    none = np.zeros(0, dtype=np.int64)
    for ids, offsets in (tokenizer.encode_batch([]), tokenizer.encode_documents(b"", none, none)):
        assert (ids.tolist(), offsets.tolist()) == ([], [0])


def test_special_tokens_as_text() -> None:
    special = unigram().with_added([AddedToken("<end>", 263)])
    before, (as_text, _) = (
        special.encode_batch(["<end>"]),
        special.encode_batch(["<end>"], parse_special=False),
    )
    assert before[0].tolist() == [263]
    assert 263 not in as_text
    assert special.encode_batch(["<end>"])[0].tolist() == [263], "the setting is put back"


def test_taking_tokens_out(tokenizer: AnyTokenizer) -> None:
    """What stays keeps its order, and what the removed token made is spelt by its parts."""
    gone = tokenizer.vocab["ab"]
    smaller = tokenizer.without([gone])
    assert smaller.vocab.keys() == tokenizer.vocab.keys() - {"ab"}
    assert smaller.row_count == tokenizer.row_count - 1
    mapping = ids_without(tokenizer, [gone])
    assert sorted(mapping.values()) == list(range(smaller.row_count))
    before, after = tokens_by_id(tokenizer), tokens_by_id(smaller)
    assert {new: before[old] for old, new in mapping.items()} == after
    texts = ["ab"]
    assert len(smaller.encode_batch(texts)[0]) > len(tokenizer.encode_batch(texts)[0])
    decode = smaller.decode_batch(*smaller.encode_batch(texts))
    if tokenizer.kind != "WordPiece":  # without a decoder its tokens are joined by spaces
        assert decode == texts
    assert smaller.fingerprint != tokenizer.fingerprint


def test_ids_may_keep_holes() -> None:
    for made in (bpe(), wordpiece()):
        gone = made.vocab["ab"]
        smaller = made.without([gone], keep_ids=True)
        assert ids_of_tokens(smaller) == ids_of_tokens(made) - {gone}
    with pytest.raises(ValueError, match="places in a list"):
        unigram().without([unigram().vocab["ab"]], keep_ids=True)


def test_added_and_unknown_tokens_stay(tokenizer: AnyTokenizer) -> None:
    assert tokenizer.unk_token is not None
    for token_id in (tokenizer.added_tokens[-1].id, tokenizer.vocab[tokenizer.unk_token]):
        with pytest.raises(ValueError, match="cannot be taken out"):
            tokenizer.without([token_id])


def test_merges_that_make_a_removed_token_go() -> None:
    smaller = bpe().without([bpe().vocab["ab"]])
    assert smaller.model.merges == (("b", "a"),)
    assert smaller.unreachable() == ("aba",), "its parts are gone: it is for callers to order"


def test_unreachable() -> None:
    assert bpe().unreachable() == ()
    assert unigram().unreachable() == ("ba",), "its letters together are likelier"
    assert wordpiece().unreachable() == ()


def test_splits(tokenizer: AnyTokenizer) -> None:
    splits, names = tokenizer.splits(), tokens_by_id(tokenizer)
    halves = {
        names[i]: (names[int(splits.left[i])], names[int(splits.right[i])])
        for i in np.flatnonzero(splits.left >= 0).tolist()
    }
    expected = {"ab": ("a", "b"), "ba": ("b", "a"), "aba": ("ab", "a")}
    assert halves == (expected if tokenizer.kind == "BPE" else {})
    assert {"a", "b"} <= {names[i] for i in np.flatnonzero(splits.atomic).tolist()}


def test_merge_skipping() -> None:
    skipping = Tokenizer(BpeModel(bpe().vocab, (), ignore_merges=True, unk_token="<unk>"))
    alone = skipping.without_merge_skipping()
    assert skipping.encode_batch(["ab"])[0].tolist() == [4]
    assert alone.encode_batch(["ab"])[0].tolist() == [1, 2]
    for made in (alone, unigram(), wordpiece()):
        assert made.without_merge_skipping() is made


def test_what_was_computed_is_not_pickled(tokenizer: AnyTokenizer) -> None:
    """So that a cache that hashes the bytes finds them again, and compiled parts stay behind."""
    before = pickle.dumps(KINDS[tokenizer.kind]())
    tokenizer.encode_batch(TEXTS, parse_special=False)
    _ = tokenizer.fingerprint, tokenizer.token_bytes, tokenizer.splits(), tokenizer.row_count
    assert pickle.dumps(tokenizer) == before
    again = pickle.loads(before)
    assert again.encode_batch(TEXTS)[0].tolist() == tokenizer.encode_batch(TEXTS)[0].tolist()


def test_a_folder_of_each_kind(tokenizer: AnyTokenizer, tmp_path: Path) -> None:
    again = open_tokenizer(tokenizer.save_pretrained(tmp_path / "out"))
    assert again.kind == tokenizer.kind
    assert json.loads(again.to_json()) == json.loads(tokenizer.to_json())
    config = json.loads((tmp_path / "out" / "tokenizer_config.json").read_bytes())
    assert ("model_input_names" in config) == (tokenizer.kind != "BPE")
    with pytest.raises(FileExistsError):
        tokenizer.save_pretrained(tmp_path / "out")


@pytest.mark.parametrize(
    "room", ["checks", "cli", "evaluation", "playground", "pruning", "trainers"]
)
def test_no_room_asks_for_the_class(room: str) -> None:
    """What kinds differ in is a member of the protocol; `kind` says the rest."""
    asks = re.compile(r"isinstance\([^()]*\b(?:UnigramOrWordPiece)?Tokenizer\b")
    files = list((Path(vocabshift.__file__).parent / room).rglob("*.py"))
    assert len(files) > 1
    found: dict[str, Any] = {file.name: asks.findall(file.read_text()) for file in files}
    assert {name: hits for name, hits in found.items() if hits} == {}
    assert asks.search("if not isinstance(old, Tokenizer | Other):"), "the pattern finds such"


def test_bytes_are_decoded_as_the_library_does(make_byte_level: Callable[..., Tokenizer]) -> None:
    """Parts of characters, added tokens that look like images of bytes, ids that nothing has."""
    tokenizer = make_byte_level("é", "क", "🙂", specials=("<s>", "Ġé", "｜क", "<0x41>"))
    ids = np.random.default_rng(3).integers(0, tokenizer.row_count + 5, 4000).astype(np.int32)
    rows = ids.reshape(-1, 5).tolist()
    expected = tokenizer.backend.decode_batch(rows, skip_special_tokens=False)
    assert expected == tokenizer.decode_batch(ids, np.arange(0, 4001, 5))
