"""`tokenizer.json` is read, written, and refused when it is unsound."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import tokenizer_json
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer

TEXT = "abc ab <s>नमस्ते  x\n"
Edit = Callable[[dict[str, Any]], Any]


def test_written_and_read_again_it_is_the_same(small: Tokenizer) -> None:
    again = Tokenizer.from_json(tokenizer_json.to_json(small))
    assert again.model.vocab == small.model.vocab
    assert again.model.merges == small.model.merges
    assert again.pre_tokenizer == small.pre_tokenizer
    assert again.added_tokens == small.added_tokens
    assert again.backend.encode(TEXT).ids == small.backend.encode(TEXT).ids


def test_string_merges_are_read_and_written_as_pairs(
    small: Tokenizer, as_object: Callable[[Tokenizer], dict[str, Any]]
) -> None:
    data = as_object(small)
    pairs = data["model"]["merges"]
    data["model"]["merges"] = ["#version: 0.2", *(" ".join(pair) for pair in pairs)]
    read = Tokenizer.from_json(data)
    assert read.model.merges == small.model.merges
    assert as_object(read)["model"]["merges"] == pairs


def test_truncation_padding_and_unknown_keys_are_left_behind(
    small: Tokenizer, as_object: Callable[[Tokenizer], dict[str, Any]]
) -> None:
    data = as_object(small)
    data["truncation"] = {"max_length": 2, "direction": "Right"}
    data["somebody's own key"] = 1
    assert as_object(Tokenizer.from_json(data))["truncation"] is None


def test_added_tokens_stay_outside_the_vocabulary_where_their_ids_allow(
    small: Tokenizer, as_object: Callable[[Tokenizer], dict[str, Any]]
) -> None:
    assert "<s>" not in as_object(small)["model"]["vocab"]


def test_added_tokens_with_holes_or_in_front_of_tokens_keep_their_ids(
    small: Tokenizer, as_object: Callable[[Tokenizer], dict[str, Any]]
) -> None:
    vocab = dict(small.model.vocab) | {"abcab": 400}
    grown = replace(
        small,
        model=replace(small.model, vocab=vocab, merges=(*small.model.merges, ("abc", "ab"))),
        added_tokens=(AddedToken("<s>", 300), AddedToken("<e>", 500)),
    )
    assert as_object(grown)["model"]["vocab"]["<e>"] == 500
    assert grown.backend.token_to_id("<e>") == 500
    assert grown.backend.encode("<s>abcab<e>", add_special_tokens=False).ids == [300, 400, 500]
    assert grown.row_count == 501


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((AddedToken("<s>", 3),), "that is '\\$'"),
        ((AddedToken("abc", 300),), "the vocabulary says 257"),
        ((AddedToken("<s>", 300), AddedToken("<s>", 301)), "shares its text or its id"),
        ((AddedToken("<s>", 300), AddedToken("<e>", 300)), "shares its text or its id"),
        ((AddedToken("<s>", 2**40),), "cannot have id"),
    ],
)
def test_added_tokens_that_cannot_have_their_id_are_refused(
    small: Tokenizer, tokens: tuple[AddedToken, ...], message: str
) -> None:
    with pytest.raises(InvalidTokenizerError, match=message):
        tokenizer_json.to_json(replace(small, added_tokens=tokens))


def test_a_file_whose_added_token_would_get_another_id_is_refused(
    small: Tokenizer, as_object: Callable[[Tokenizer], dict[str, Any]]
) -> None:
    data = as_object(small)
    data["added_tokens"][1]["id"] += 5
    with pytest.raises(InvalidTokenizerError, match="states id 266, but `tokenizers` gives it 261"):
        Tokenizer.from_json(data)


@pytest.mark.parametrize("text", ["", "nonsense", "[1, 2]", "{", '"\\ud800"', "[" * 100_000])
def test_text_that_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidTokenizerError, match=r"JSON"):
        Tokenizer.from_json(text)


def _in_model(key: str, value: Any) -> Edit:
    return lambda data: data["model"].__setitem__(key, value)


def _at_top(key: str, value: Any) -> Edit:
    return lambda data: data.__setitem__(key, value)


def _template(times: int) -> dict[str, Any]:
    text = {"Sequence": {"id": "A", "type_id": 0}}
    own: dict[str, Any] = {"single": [text] * times, "pair": [], "special_tokens": {}}
    return {"type": "TemplateProcessing", **own}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_at_top("model", None), "no `model` object"),
        (_in_model("type", "Unigram"), "'Unigram', not BPE"),
        (_in_model("type", "WordPiece"), "'WordPiece', not BPE"),
        (_in_model("type", "WordLevel"), "'WordLevel', not BPE"),
        (_in_model("type", 3), "type 3, not BPE"),
        (_in_model("dropout", 0.1), "makes its ids random"),
        (_in_model("vocab", []), "no object with tokens"),
        (_in_model("vocab", {"a": "1"}), "the id of 'a'"),
        (_in_model("vocab", {"a": True}), "the id of 'a'"),
        (_in_model("vocab", {"a": 1.5}), "the id of 'a'"),
        (_in_model("vocab", {"a": 0, "b": 0}), "distinct ids"),
        (_in_model("merges", {}), "no list"),
        (_in_model("merges", [["a"]]), "merge 0 does not join two tokens"),
        (_in_model("merges", ["a b c"]), "merge 0 does not join two tokens"),
        (_in_model("merges", [["a", 1]]), "no string"),
        (_in_model("merges", ["a b", ["a", "b"]]), "mixes"),
        (_in_model("merges", [["a", "nowhere"]]), "'nowhere' is not in the vocabulary"),
        (_in_model("ignore_merges", "yes"), "model.ignore_merges is 'yes'"),
        (_in_model("unk_token", 7), "model.unk_token is 7"),
        (_at_top("added_tokens", {}), "no list"),
        (_at_top("added_tokens", [7]), "no object"),
        (_at_top("added_tokens", [{"content": "x"}]), "lacks its content or id"),
        (_at_top("added_tokens", [{"content": "x", "id": 260}]), "lacks a flag"),
        (_at_top("normalizer", "NFC"), "neither an object nor null"),
        (_at_top("normalizer", {"type": "Nonsense"}), "`tokenizers` does not accept it"),
        (
            _at_top("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "("}}),
            "`tokenizers` does not accept it",
        ),
        # `tokenizers` accepts the rest.
        (_at_top("normalizer", {"normalizers": []}), "a step of normalizer is no object"),
        (
            _at_top("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}, [[]]]}),
            "a step of normalizer is no object with a type",
        ),
        (_at_top("post_processor", _template(0)), "has the text 0 times, not once"),
        (
            _at_top("post_processor", {"type": "Sequence", "processors": [_template(2)]}),
            "has the text 2 times, not once",
        ),
    ],
)
def test_unsound_contents_are_refused(
    small: Tokenizer,
    as_object: Callable[[Tokenizer], dict[str, Any]],
    edit: Edit,
    message: str,
) -> None:
    data = as_object(small)
    edit(data)
    with pytest.raises(InvalidTokenizerError, match=message):
        Tokenizer.from_json(json.dumps(data))


def test_half_a_surrogate_pair_is_refused(small: Tokenizer) -> None:
    text = tokenizer_json.to_json(small).replace('"<pad>"', '"\\ud800"')
    with pytest.raises(InvalidTokenizerError, match="not JSON in UTF-8"):
        Tokenizer.from_json(text)


def test_to_hf_keeps_roles_template_and_ids(small: Tokenizer) -> None:
    pytest.importorskip("transformers")
    fast = small.to_hf()
    assert fast.bos_token_id == 260
    assert fast.chat_template == "{{ messages }}"
    assert fast.model_max_length == 512
    assert fast.encode(TEXT) == small.backend.encode(TEXT).ids
