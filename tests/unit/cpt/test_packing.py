"""Packing: which documents a budget takes, and how they lie in rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from vocabshift.cpt.packing import PADDING, RowCopies, draw, pack, take
from vocabshift.errors import CorpusError

TEXTS = ["one", "deux mots", "तीन", "четыре слова здесь", ""]


def encode_bytes(texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """One id a byte: ids are 0-255."""
    data = [list(text.encode()) for text in texts]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int64)
    return np.array([byte for row in data for byte in row], dtype=np.int32), offsets


def test_take_meets_the_budget_and_overshoots_by_less_than_a_document() -> None:
    """The last document is the one that crosses the budget."""
    for budget in (1, 10, 60, 200):
        taken = take(TEXTS, budget)
        sizes = [len(text.encode()) for text in taken]
        assert sum(sizes) >= budget
        assert sum(sizes[:-1]) < budget


def test_take_goes_round_after_round() -> None:
    """A budget of three corpora holds every document three times, in changing order."""
    total = sum(len(text.encode()) for text in TEXTS)
    taken = take(TEXTS, 3 * total)
    assert sorted(taken) == sorted(3 * TEXTS[:4])
    assert len({tuple(taken[i : i + 4]) for i in (0, 4, 8)}) > 1


def test_take_depends_on_the_seed_alone() -> None:
    """One seed, one order."""
    assert take(TEXTS, 500, seed=3) == take(TEXTS, 500, seed=3)
    assert take(TEXTS, 500, seed=3) != take(TEXTS, 500, seed=4)


@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_take_refuses_an_empty_corpus(texts: list[str]) -> None:
    """Nothing to train on is an error, not an endless round."""
    with pytest.raises(CorpusError, match="no text"):
        take(texts, 10)


def test_take_refuses_an_empty_budget() -> None:
    """A budget of nothing is named."""
    with pytest.raises(ValueError, match="n_bytes is 0"):
        take(TEXTS, 0)


def test_take_refuses_rounds_without_end() -> None:
    """A budget with too many zeros is an error, not a memory that fills up."""
    with pytest.raises(ValueError, match=r"rounds over a corpus of [0-9]+ bytes"):
        take(TEXTS, 10**30)


def test_rows_overlap_by_one_token() -> None:
    """Rows are the stream cut at `length`, each with the first token of the next."""
    packed = pack(["ab", "c"], encode_bytes, separator=[256], length=2)
    expected = [[256, 97, 98], [98, 256, 99], [99, 256, PADDING]]
    assert packed.rows.tolist() == expected


def test_two_separators_frame_every_document() -> None:
    """With EOS and BOS each document follows the BOS and ends with the EOS."""
    packed = pack(["a", "b"], encode_bytes, separator=[300, 301], length=7)
    assert packed.rows.tolist() == [[300, 301, 97, 300, 301, 98, 300, 301]]


@pytest.mark.parametrize("length", [2, 3, 5, 16, 100])
def test_every_token_is_a_target_once(length: int) -> None:
    """Targets of all rows are the stream without its first token."""
    packed = pack(TEXTS[:4], encode_bytes, separator=[256], length=length)
    targets = packed.rows[:, 1:]
    stream = [256]
    for text in TEXTS[:4]:
        stream += [*text.encode(), 256]
    assert targets[targets != PADDING].tolist() == stream[1:]
    assert packed.n_targets == len(stream) - 1


@pytest.mark.parametrize("length", [2, 3, 7, 64])
def test_row_bytes_sum_to_the_text(length: int) -> None:
    """Separators weigh nothing: the bytes of all rows are those of the documents."""
    packed = pack(TEXTS[:4], encode_bytes, separator=[256], length=length)
    assert packed.n_bytes == sum(len(text.encode()) for text in TEXTS[:4])
    assert (packed.row_bytes >= 0).all()


def test_row_bytes_do_not_count_tokens() -> None:
    """A document of one token has all its bytes in the row that holds this token's end."""

    def encode_whole(texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return np.arange(len(texts), dtype=np.int32), np.arange(len(texts) + 1, dtype=np.int64)

    packed = pack(["a" * 10, "b" * 100], encode_whole, separator=[9], length=2)
    assert packed.rows.tolist() == [[9, 0, 9], [9, 1, 9]]
    assert packed.row_bytes.tolist() == [10, 100]


@pytest.mark.parametrize(
    ("texts", "separator", "length", "message"),
    [
        (["a"], [1], 1, "at least 2 tokens"),
        (["a"], [], 4, "separator"),
        ([], [1], 4, "no document"),
    ],
)
def test_pack_refuses(texts: list[str], separator: list[int], length: int, message: str) -> None:
    """Impossible requests are named."""
    with pytest.raises(ValueError, match=message):
        pack(texts, encode_bytes, separator=separator, length=length)


def test_draw_gives_what_a_loop_over_the_rounds_gives() -> None:
    """Document by document, round by round, in the order of the same generator."""
    lengths = [5, 0, 3, 11, 1, 0, 7]
    for budget in (1, 4, 27, 28, 100):
        for seed in range(5):
            generator = np.random.default_rng(seed)
            expected: list[int] = []
            left = budget
            while left > 0:
                for index in generator.permutation(len(lengths)).tolist():
                    if lengths[index] and left > 0:
                        expected.append(index)
                        left -= lengths[index]
            assert expected == draw(lengths, budget, seed=seed).tolist()


def test_copies_are_the_rows_one_after_the_other() -> None:
    """Three copies equal three times the rows, laid end to end."""
    packed = pack(TEXTS, encode_bytes, separator=[9], length=8)
    copies = RowCopies(packed, 3)
    assert copies.row_bytes.tolist() == 3 * packed.row_bytes.tolist()
    assert copies.n_bytes == 3 * packed.n_bytes
    indexes = np.array([len(packed.rows) * 2 + 1, 0, len(packed.rows), 1])
    assert np.array_equal(copies.take(indexes), np.concatenate([packed.rows] * 3)[indexes])
