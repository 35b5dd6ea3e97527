"""Rank files become tokenizers that encode as tiktoken does."""

from __future__ import annotations

import base64

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.text import patterns, regexes
from vocabshift.tokenizer.formats import known_ranks
from vocabshift.tokenizer.formats import tiktoken as rank_merges
from vocabshift.tokenizer.formats import tiktoken as ranks


def test_every_split_is_ordered_by_the_rank_of_its_product() -> None:
    table = {b"a": 0, b"b": 1, b"ab": 2, b"ba": 3, b"aba": 4}
    assert rank_merges.every_split(table) == [("a", "b"), ("b", "a"), ("a", "ba"), ("ab", "a")]


def test_one_split_is_the_last_merge_on_the_way_to_a_token() -> None:
    table = {b"a": 0, b"b": 1, b"ab": 2, b"ba": 3, b"aba": 4, b"bb?": 5}
    assert rank_merges.one_split(table) == [("a", "b"), ("b", "a"), ("ab", "a")]


def test_merges_by_score_put_the_best_product_first() -> None:
    scores = {"a": 0.0, "b": 0.0, "ab": -2.0, "ba": -1.0, "aba": -3.0}
    vocab = {piece: token_id for token_id, piece in enumerate(scores)}
    assert rank_merges.by_score(vocab, scores) == [
        ("b", "a"),
        ("a", "b"),
        ("ab", "a"),
        ("a", "ba"),
    ]


def test_unknown_ranks_need_a_pattern_and_take_a_name_or_a_regex(ranks_file: bytes) -> None:
    with pytest.raises(InvalidTokenizerError, match="--pattern"):
        ranks.from_ranks(ranks_file)
    for pattern in ("cl100k", regexes.CL100K):
        tokenizer = ranks.from_ranks(ranks_file, pattern=pattern)
        assert tokenizer.backend.encode("abc abab").ids == [257, 258, 256]
        assert tokenizer.model.ignore_merges
        assert tokenizer.added_tokens == ()
    with pytest.raises(InvalidTokenizerError, match="--pattern: no pre-tokenizer is named"):
        ranks.from_ranks(ranks_file, pattern="nonsense")


def test_the_hash_does_not_depend_on_line_order_or_line_ends(ranks_file: bytes) -> None:
    shuffled = b"\r\n".join(reversed(ranks_file.splitlines())) + b"\r\n\r\n"
    expected = known_ranks.ranks_hash(ranks.read_ranks(ranks_file))
    assert known_ranks.ranks_hash(ranks.read_ranks(shuffled)) == expected


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda data: data + b"nonsense", "line 260 of the rank file is not"),
        (lambda data: data + b"YWI= 999\n", "line 260 of the rank file repeats"),
        (lambda data: data + b"YQ 999\n", "line 260"),
        (lambda data: data.replace(b"YWI= 256", b"YWI= 1"), "distinct ids"),
        (lambda data: data.replace(b"YWI= 256", b"YWI= 999999999"), "above the highest"),
        (lambda data: data[:100], "lack 2.. of the 256 single bytes"),
        (lambda data: data[: len(data) - 3], "line 259|distinct"),
    ],
)
def test_damaged_rank_files_are_refused(ranks_file: bytes, edit, message: str) -> None:
    with pytest.raises(InvalidTokenizerError, match=message):
        ranks.from_ranks(edit(ranks_file), pattern="gpt2")


def test_special_tokens_of_the_known_vocabularies_do_not_overlap() -> None:
    for known in known_ranks._KNOWN.values():
        ids = list(known.special_tokens.values())
        assert len(set(ids)) == len(ids)
        assert set(known.roles.values()) <= set(known.special_tokens)
        assert patterns.get_pattern(known.pattern)


def test_is_ranks_looks_at_the_first_line() -> None:
    assert ranks.is_ranks(base64.b64encode(b"x") + b" 0\r\nmore")
    assert not ranks.is_ranks(b'{"a": 1}')
