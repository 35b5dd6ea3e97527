"""config_ids: every id of both configs follows its token, lists too."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

transformers = pytest.importorskip("transformers")

from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.surgery import config_ids  # noqa: E402
from vocabshift.surgery.matching import match  # noqa: E402
from vocabshift.surgery.special_ids import (  # noqa: E402
    match_specials,
    roles_of_config,
)


@pytest.fixture
def moved(make_byte_level):
    """Give a model's configs their new ids; from <s> 257, </s> 258 to 259, 260."""
    old = make_byte_level("ab", specials=("<s>", "</s>"), config={"bos_token": "<s>"})
    new = make_byte_level("cd", "ef", "gh")

    def move(generation: dict, **ids):
        model = SimpleNamespace(
            config=transformers.LlamaConfig(vocab_size=259, **ids),
            generation_config=transformers.GenerationConfig(**generation),
            base_model=None,
        )
        specials = match_specials(old, new, roles_of_config(model.config))
        mapping = match(old, specials.tokenizer, specials.new_to_old)
        changes = config_ids.plan(model, specials, mapping)
        config_ids.apply(model, changes, 261)
        return model, config_ids.moved_ids(changes)

    return move


def test_ids_and_lists_follow(moved) -> None:
    """bos, a list of eos, and an ordinary token as pad."""
    model, ids = moved(
        {"eos_token_id": [258, 257], "suppress_tokens": [256, 258], "bad_words_ids": [[1], [256]]},
        bos_token_id=257,
        eos_token_id=[258, 257],
        pad_token_id=3,
    )
    config, generation = model.config, model.generation_config
    assert (259, [260, 259], 3) == (config.bos_token_id, config.eos_token_id, config.pad_token_id)
    assert [260, 259] == generation.eos_token_id
    assert [260] == generation.suppress_tokens  # "ab" is gone
    assert [[1]] == generation.bad_words_ids
    assert 261 == config.vocab_size
    assert [257, 259] == ids["bos"]
    assert [[258, 257], [260, 259]] == ids["generation_config.eos"]


def test_id_of_no_token_becomes_that_of_the_role(moved) -> None:
    """A default that nobody set must not point at a token that happens to have this id now."""
    model, ids = moved({}, bos_token_id=50256, eos_token_id=50256, pad_token_id=-1)
    config = model.config
    assert (259, None, -1) == (config.bos_token_id, config.eos_token_id, config.pad_token_id)
    assert [50256, None] == ids["eos"]


def test_what_is_no_id_stays(moved) -> None:
    """Among ids too: a truth value is no token, and nor is a text."""
    model, _ = moved(
        {
            "eos_token_id": [258, "a", True],
            "bad_words_ids": [[257, "a"], [True]],
            "suppress_tokens": ["a", np.int64(258)],
        },
        bos_token_id=257,
        eos_token_id=258,
    )
    generation = model.generation_config
    assert [260, "a", True] == generation.eos_token_id
    assert [[259, "a"], [True]] == generation.bad_words_ids
    assert ["a", 260] == generation.suppress_tokens


def test_alternatives_of_phrases_follow(moved) -> None:
    """Three levels of `force_words_ids`: "ab" is gone, and with it what holds it."""
    given = [[[257, 1], [258]], [[256], [258]], [[256]], [258, 1]]
    model, _ = moved({"force_words_ids": given}, bos_token_id=257, eos_token_id=258)
    assert [[[259, 1], [260]], [[260]], [260, 1]] == model.generation_config.force_words_ids


@pytest.mark.parametrize("kind", [list, dict])
def test_phrases_with_a_bias_follow(moved, kind) -> None:
    """Ids move, biases that look like ids do not; "ab" is gone, and its phrase with it."""
    given = [[[257, 3], 258.0], [[258], 3.0], [[3, 256], 1.0]]
    wanted = [[[259, 3], 258.0], [[260], 3.0]]
    if kind is dict:
        given, wanted = ({tuple(ids): bias for ids, bias in pairs} for pairs in (given, wanted))
    model, _ = moved({"sequence_bias": given}, bos_token_id=257, eos_token_id=258)
    assert wanted == model.generation_config.sequence_bias
    for wrong in ([3], {"(257, 3)": 1.0}, [[["a"], 1.0]]):
        with pytest.raises(ValueError, match="sequence_bias is"):
            moved({"sequence_bias": wrong}, bos_token_id=257, eos_token_id=258)


def test_lost_token_is_refused(moved) -> None:
    """The model stops at "ab", which the new tokenizer does not have."""
    with pytest.raises(VocabMismatchError, match="eos_token_id is 256"):
        moved({}, eos_token_id=256, bos_token_id=257)


MOVED = {5: 1, 6: 2, 7: None}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"image_token_id": 5}, {"image_token_id": 1}),
        ({"image_token_index": 7, "size": 5}, {"image_token_index": 7, "size": 5}),
        ([{"keep_only_token_ids": [5, 6, 9]}], [{"keep_only_token_ids": [1, 2, 9]}]),
        ({"a": {"lang_to_id": {"en": 5, "xx": 7}}}, {"a": {"lang_to_id": {"en": 1}}}),
        ({"vocabulary_map": None}, {"vocabulary_map": None}),
        (
            {"forced_decoder_ids": [[1, None], [2, 5], [3, 7]]},
            {"forced_decoder_ids": [[1, None], [2, 1]]},
        ),
        ({"forced_decoder_ids": [[2, 7]]}, {"forced_decoder_ids": None}),
        ({"forced_decoder_ids": []}, {"forced_decoder_ids": []}),
        ({"suppress_tokens": [5, 7, 6]}, {"suppress_tokens": [1, 2]}),
        ({"vocab_size": 8, "hidden_size": 8}, {"vocab_size": 4, "hidden_size": 8}),
        ({"vocab_size": -1}, {"vocab_size": -1}),
        ({"x_token_ids": [{"id": 5}, "5", 5.0]}, {"x_token_ids": [{"id": 5}, "5", 5.0]}),
        ({"x_token_id": True, "y_token_id": "5"}, {"x_token_id": True, "y_token_id": "5"}),
        (
            {"pooling_strategy": "max", "word_embedding_dimension": 8},
            {"pooling_strategy": "max", "word_embedding_dimension": 4},
        ),
        ({"word_embedding_dimension": 8}, {"word_embedding_dimension": 8}),
    ],
)
def test_files_beside_the_configs(before, after) -> None:
    """Ids move wherever their keys are; a token that is gone leaves lists and tables."""
    assert after == config_ids.moved_json(before, MOVED.get, (8, 4))


def test_pairs_that_are_none() -> None:
    with pytest.raises(ValueError, match="forced_decoder_ids is"):
        config_ids.moved_json({"forced_decoder_ids": [5]}, MOVED.get, (8, 4))
