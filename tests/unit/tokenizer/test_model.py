"""BpeModel refuses what contradicts itself."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from vocabshift import _core
from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.byte_level import to_image
from vocabshift.tokenizer.model import MAX_ID, BpeModel, compile_model, read_strings
from vocabshift.tokenizer.tokenizer import Tokenizer


def test_size_counts_rows_and_not_tokens() -> None:
    assert BpeModel({"a": 0, "b": 7}, ()).size == 8


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ({"a": 0, "b": 0}, (), "distinct ids"),
        ({"a": -1}, (), "negative id -1"),
        ({"a": MAX_ID + 1}, (), "above the highest possible"),
        ({"a": 0, "b": 1}, (("a", "b"),), "merge 0 joins 'a' and 'b', but 'ab' is not"),
        ({"a": 0, "ab": 1}, (("a", "b"),), "but 'b' is not in the vocabulary"),
    ],
)
def test_contradictions_are_refused(
    vocab: dict[str, int], merges: tuple[tuple[str, str], ...], message: str
) -> None:
    with pytest.raises(InvalidTokenizerError, match=message):
        BpeModel(vocab, merges)


def test_continuing_prefix_is_taken_off_the_right_part() -> None:
    model = BpeModel({"a": 0, "##b": 1, "ab": 2}, (("a", "##b"),), continuing_subword_prefix="##")
    assert model.product("a", "##b") == "ab"
    with pytest.raises(InvalidTokenizerError, match="lacks the continuing_subword_prefix"):
        BpeModel({"a": 0, "b": 1, "ab": 2}, (("a", "b"),), continuing_subword_prefix="##")


def test_unk_token_must_be_there_unless_nothing_is_ever_unknown() -> None:
    with pytest.raises(InvalidTokenizerError, match="unk_token '<unk>'"):
        BpeModel({"a": 0}, (), unk_token="<unk>")


def read(vocab: dict[str, int], merges: list[list[str]], **options: object) -> BpeModel:
    """The model of a tokenizer.json, as the core reads it."""
    document = {"model": {"type": "BPE", "vocab": vocab, "merges": merges, **options}}
    return Tokenizer.from_json(json.dumps(document)).model


def test_a_model_of_a_file_answers_without_python_strings() -> None:
    model = read({"a": 3, "b": 1, "ab": 7}, [["a", "b"]])
    assert (3, 8, 7, None) == (
        model.n_tokens,
        model.size,
        model.token_id("ab"),
        model.token_id("\ud800"),
    )
    assert not {"vocab", "merges"} & vars(model).keys()
    assert ({"a": 3, "b": 1, "ab": 7}, (("a", "b"),)) == (model.vocab, model.merges)


def test_a_copy_of_a_model_of_a_file_shares_its_strings_until_one_is_changed() -> None:
    model = read({"a": 0, "b": 1, "ab": 2}, [["a", "b"]])
    skipping = model.unchecked(ignore_merges=True)
    assert not {"vocab", "merges"} & vars(model).keys()
    assert (True, model.vocab, model.merges) == (
        skipping.ignore_merges,
        skipping.vocab,
        skipping.merges,
    )
    longer = model.unchecked(vocab={**model.vocab, "c": 3})
    assert (4, 3) == (longer.n_tokens, longer.token_id("c"))
    assert compile_model(longer, byte_level=False).last_merges().tolist() == [-1, -1, 0, -1]


def test_a_model_of_a_file_is_pickled_as_one_that_was_given() -> None:
    vocab, merges = {"a": 0, "b": 1, "ab": 2}, (("a", "b"),)
    found = pickle.loads(pickle.dumps(read(vocab, [list(merge) for merge in merges])))
    assert (vocab, merges) == (found.vocab, found.merges)
    assert pickle.dumps(BpeModel(vocab, merges)) == pickle.dumps(found)


def test_the_unknown_token_of_a_model_of_a_file_must_be_there() -> None:
    with pytest.raises(InvalidTokenizerError, match="unk_token '<unk>'"):
        read({"a": 0, "b": 1, "ab": 2}, [["a", "b"]], unk_token="<unk>")


def test_a_trained_model_is_the_model_of_its_strings() -> None:
    """Of every byte, of a merge that makes a token anew, and without Python strings at first."""
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b" a", b" ab"]
    merges = [[97, 98, 256], [32, 97, 257], [257, 98, 258], [32, 256, 258]]
    strings = _core.ModelStrings.of_bytes(tokens, np.array(merges, dtype=np.uint32))
    images = [to_image(token) for token in tokens]
    expected = BpeModel(
        {image: token_id for token_id, image in enumerate(images)},
        tuple((images[left], images[right]) for left, right, _ in merges),
    )
    model = BpeModel.of_strings(strings)
    assert (259, 258, True) == (model.n_tokens, model.token_id("Ġab"), model.is_byte_level)
    assert not {"vocab", "merges"} & vars(model).keys()
    assert list(expected.vocab.items()) == list(model.vocab.items())
    assert expected.merges == model.merges
    with pytest.raises(ValueError, match="a token is given twice"):
        _core.ModelStrings.of_bytes([b"a", b"a"], np.zeros((0, 3), dtype=np.uint32))
    with pytest.raises(ValueError, match="unknown id"):
        _core.ModelStrings.of_bytes([b"a"], np.array([[0, 0, 1]], dtype=np.uint32))


def test_pairs_are_made_of_their_own_vocabulary_alone() -> None:
    strings = read_strings({"a": 0, "b": 1, "ab": 2}, (("a", "b"),), MAX_ID)
    assert strings is not None
    assert (("a", "b"),) == strings.pairs(strings.vocab())
    with pytest.raises(ValueError, match="another vocabulary"):
        strings.pairs({"a": 0})
