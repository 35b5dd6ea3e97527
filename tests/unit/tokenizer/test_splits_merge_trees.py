"""How BPE builds a token."""

from __future__ import annotations

import pytest

from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.splits import MergeNode, Splits, merge_tree, split_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer


def splits(*merges: tuple[str, str], vocab: str = "abc") -> tuple[dict[str, int], Splits]:
    """Of letters and merges; "<s>" is added behind."""
    tokens = [*vocab, *("".join(pair) for pair in merges)]
    ids = {token: number for number, token in enumerate(tokens)}
    model = BpeModel(ids, merges)
    tokenizer = Tokenizer(model, added_tokens=(AddedToken("<s>", len(ids)),))
    return ids, split_tokens(tokenizer)


def test_by_hand() -> None:
    """a b c -> bc (rank 0) -> abc (rank 2): not the order of the letters."""
    ids, found = splits(("b", "c"), ("a", "b"), ("a", "bc"))
    tree = [
        MergeNode(ids["abc"], 2, 1, 2),
        MergeNode(ids["a"]),
        MergeNode(ids["bc"], 0, 3, 4),
        MergeNode(ids["b"]),
        MergeNode(ids["c"]),
    ]
    assert tree == merge_tree(found, ids["abc"])


def test_what_no_merge_makes_is_one_node() -> None:
    """A letter and an added token."""
    ids, found = splits(("a", "b"))
    assert [MergeNode(ids["a"])] == merge_tree(found, ids["a"])
    assert [MergeNode(4)] == merge_tree(found, 4)


def test_a_huge_tree_is_cut() -> None:
    """Twenty doublings spell a million letters: the lowest nodes say that there is more."""
    tokens = ["a" * 2**power for power in range(20)]
    ids, found = splits(*[(token, token) for token in tokens], vocab="a")
    tree = merge_tree(found, ids["a" * 2**20], most=6)
    assert [19, 18, 18, 17, 17] == [node.rank for node in tree]
    assert [False, False, True, True, True] == [node.is_cut for node in tree]
    assert [(1, 2), (3, 4)] == [(node.left, node.right) for node in tree[:2]]
    assert 1023 == len(merge_tree(found, ids["a" * 2**20]))


@pytest.mark.parametrize("token_id", [-1, 5])
def test_an_id_without_a_row(token_id: int) -> None:
    """Not the last row."""
    _, found = splits(("a", "b"))
    with pytest.raises(IndexError, match=f"no token has the id {token_id}"):
        merge_tree(found, token_id)
