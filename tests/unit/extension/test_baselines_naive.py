"""The baselines of extension on vocabularies that can be read at a glance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.extension.baselines import (
    Auxiliary,
    add_tokens,
    append,
    naive_extension,
    regen,
    train_auxiliary,
)
from vocabshift.extension.continued import TrainingBase
from vocabshift.extension.counting import count_byte_level
from vocabshift.extension.report import extension_cost
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import get_pattern, to_spec
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer

Make = Callable[..., Tokenizer]
AUXILIARY = Auxiliary(
    tokens=("a", "b", "ab", "abc", "bc", "xyz", "Ã", "Ãµ", "Ġb"),
    merges=(("a", "b"), ("ab", "c"), ("b", "c"), ("xy", "z"), ("Ã", "µ"), ("Ġ", "b")),
)


@pytest.fixture
def base(make_byte_level: Make) -> Tokenizer:
    """Holds "ab" and "q"."""
    return make_byte_level("ab", specials=("<end>",), pre_tokenizer=to_spec(get_pattern("gpt2")))


def test_new_tokens_are_those_that_the_base_lacks(base: Tokenizer) -> None:
    assert ["abc", "bc", "xyz", "Ãµ", "Ġb"] == AUXILIARY.new_tokens(base)


def test_regen_makes_a_merge_of_every_split(base: Tokenizer) -> None:
    """ "xyz" has none: neither "xy" nor "yz" is a token."""
    learned = regen(base, AUXILIARY, n_tokens=3)
    assert ("abc", "bc", "xyz") == learned.tokens
    assert (("ab", "c"), ("a", "bc"), ("b", "c")) == learned.merges
    assert "n_tokens" == learned.stopped_because
    assert "no_token_left" == regen(base, AUXILIARY, n_tokens=9).stopped_because


def test_append_takes_the_merges_that_fit(base: Tokenizer) -> None:
    learned = append(base, AUXILIARY, n_tokens=3)
    assert (("ab", "c"), ("b", "c")) == learned.merges  # "ab" is there, "xy" is not
    assert 0 == learned.n_repaired


def test_new_ids_stand_behind_the_special_tokens(base: Tokenizer) -> None:
    for method in ("regen", "append", "prepend"):
        longer = naive_extension(base, AUXILIARY, method, n_tokens=2)  # type: ignore[arg-type]
        assert {
            "abc": base.row_count,
            "bc": base.row_count + 1,
        }.items() <= longer.model.vocab.items()
        assert base.added_tokens == longer.added_tokens
    first = naive_extension(base, AUXILIARY, "prepend", n_tokens=2).model.merges
    assert ("a", "b") == first[-1]
    last = naive_extension(base, AUXILIARY, "regen", n_tokens=2).model.merges
    assert ("a", "b") == last[0]


def test_added_tokens_are_texts_and_no_text_is_a_byte_image(base: Tokenizer) -> None:
    """ "õ" is spelt "Ãµ"; the string "õ" is the image of the byte 0xF5, and has its id."""
    longer = add_tokens(base, AUXILIARY, n_tokens=9)
    new = longer.added_tokens[1:]
    assert ["abc", "bc", "xyz", " b"] == [token.content for token in new]
    assert [base.row_count + i for i in range(4)] == [token.id for token in new]
    assert not any(token.special or token.single_word for token in new)
    assert all(token.normalized for token in new)
    assert longer.backend.encode("xyz b").ids == Encoder(longer).encode("xyz b").tolist()


def test_text_that_does_not_come_back_is_counted(base: Tokenizer) -> None:
    """All characters of "éõ" are byte images: the decoder makes two bytes of them."""
    auxiliary = Auxiliary((*AUXILIARY.tokens, "Ã©Ãµ"), AUXILIARY.merges)
    longer = add_tokens(base, auxiliary, n_tokens=9)
    corpus = Corpus.from_texts({"x": ["éõ", "é", "abc"], "y": ["b"]})
    cost = extension_cost(base, longer, corpus)
    assert {"x": 1, "y": 0} == cost.lost_lines
    assert {"x": 3, "y": 1} == cost.lines
    assert (5, 0) == (cost.n_added, cost.n_merges)


def test_what_a_baseline_costs(base: Tokenizer) -> None:
    """ "ab" is made before "bc", so "abc" comes of the first split alone; put in front, the merge
    of "bc" leaves "abc" to the second."""
    cost = extension_cost(base, naive_extension(base, AUXILIARY, "regen", n_tokens=3))
    assert (3, 3, 0) == (cost.n_added, cost.n_merges, cost.extra_merges)
    assert ("xyz",) == cost.unreachable_added == cost.lost_added
    assert () == cost.unreachable_base
    assert {} == cost.lost_lines
    assert 1 == cost.to_dict()["unreachable_added"]


def test_prepended_merges_kill_old_tokens(make_byte_level: Make) -> None:
    base = make_byte_level("abc", pre_tokenizer=to_spec(()))
    auxiliary = Auxiliary(("bc",), (("b", "c"),))
    assert (
        ()
        == extension_cost(
            base, naive_extension(base, auxiliary, "append", n_tokens=1)
        ).unreachable_base
    )
    cost = extension_cost(base, naive_extension(base, auxiliary, "prepend", n_tokens=1))
    assert ("abc",) == cost.unreachable_base == cost.lost_base


def test_special_tokens_and_bytes_count_in_the_size(base: Tokenizer) -> None:
    text = count_byte_level(TrainingBase(base), Corpus.from_texts(["zx zx zx zy"]))
    trained = train_auxiliary(base, text, vocab_size=259)
    assert 258 == len(trained.tokens)
    assert (("z", "x"), ("Ġ", "zx")) == trained.merges
    assert () == train_auxiliary(base, text, vocab_size=10).merges


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "regenerate"}, "give one of"),
        ({"n_tokens": 0}, "at least 1"),
        ({"auxiliary": Auxiliary(("a",), ())}, "give more text"),
    ],
)
def test_bad_arguments(base: Tokenizer, options: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"auxiliary": AUXILIARY, "method": "regen", "n_tokens": 2} | options
    with pytest.raises(ValueError, match=message):
        naive_extension(base, **asked)


def test_a_sentencepiece_base_is_refused(make_metaspace: Make, base: Tokenizer) -> None:
    text = count_byte_level(TrainingBase(base), Corpus.from_texts(["a"]))
    with pytest.raises(ValueError, match="not byte-level"):
        train_auxiliary(make_metaspace("ab"), text)
