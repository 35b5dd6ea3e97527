"""BpeModel refuses what contradicts itself."""

from __future__ import annotations

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.model import MAX_ID, BpeModel


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
