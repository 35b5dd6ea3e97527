"""tekken files: special tokens first, then as many ranks as the config admits."""

from __future__ import annotations

from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.tekken import from_tekken, is_tekken


def test_special_tokens_stand_in_front_of_the_ranks(tekken_file: dict[str, Any]) -> None:
    assert is_tekken(tekken_file)
    tokenizer = from_tekken(tekken_file)
    assert tokenizer.vocab_size == 261
    assert [token.content for token in tokenizer.added_tokens] == ["<unk>", "<s>"]
    assert tokenizer.backend.encode("abc ab zz").ids == [1, 259, 260, 34, 124, 124]


def test_listed_special_tokens_are_taken_and_the_rest_filled(tekken_file: dict[str, Any]) -> None:
    tekken_file["special_tokens"] = [{"rank": 1, "token_str": "[B]", "is_control": True}]
    contents = [token.content for token in from_tekken(tekken_file).added_tokens]
    assert contents == ["<SPECIAL_0>", "[B]"]


@pytest.mark.parametrize(
    ("part", "key", "value", "message"),
    [
        ("config", "pattern", None, "names no pattern"),
        ("config", "default_vocab_size", "many", "not a count"),
        ("config", "default_vocab_size", 10**9, "lists 260 tokens and wants"),
        ("vocab", 7, {"rank": 8, "token_bytes": "Bw=="}, "token 7"),
        ("vocab", 7, {"rank": 7, "token_bytes": "!"}, "token 7 of the tekken file is damaged"),
        ("vocab", 7, {"rank": 7, "token_bytes": 7}, "token 7 of the tekken file is damaged"),
        ("vocab", 7, None, "token 7 of the tekken file is damaged"),
    ],
)
def test_damaged_tekken_files_are_refused(
    tekken_file: dict[str, Any], part: str, key: Any, value: Any, message: str
) -> None:
    tekken_file[part][key] = value
    with pytest.raises(InvalidTokenizerError, match=message):
        from_tekken(tekken_file)


@pytest.mark.parametrize("listed", [7, [7], [{"rank": 0}], [{"rank": 5, "token_str": "x"}]])
def test_damaged_special_tokens_are_refused(tekken_file: dict[str, Any], listed: Any) -> None:
    tekken_file["special_tokens"] = listed
    with pytest.raises(InvalidTokenizerError, match="special token"):
        from_tekken(tekken_file)
