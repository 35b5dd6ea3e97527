"""Objectives: next tokens as they stand, masked ones as the reference draws them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reference.masking import mask
from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.objectives import Masking, causal, masked
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer

torch = pytest.importorskip("torch")

MASKING = Masking(mask_id=4, special_ids=(0, 1, 4), n_ids=60)


def rows(n: int, length: int) -> Any:
    """Random ids with specials among them; the last row ends in padding."""
    ids = torch.randint(0, 60, (n, length + 1), generator=torch.Generator().manual_seed(2))
    ids[-1, length // 2 :] = -1
    return ids


def seeds(n: int) -> Any:
    """Seeds over the whole range of int64."""
    generator = torch.Generator().manual_seed(5)
    return torch.randint(-(2**63), 2**63 - 1, (n,), generator=generator)


def test_causal_targets_follow_their_inputs() -> None:
    """Each target is the next token; padding is neither."""
    inputs, targets = causal(torch.tensor([[5, 6, 7, 8], [5, 6, -1, -1]]))
    assert inputs.tolist() == [[5, 6, 7], [5, 6, 0]]
    assert targets.tolist() == [[6, 7, 8], [6, -100, -100]]


def test_masked_equals_the_reference() -> None:
    """Every input and target, for seeds of all sizes and signs."""
    ids, row_seeds = rows(20, 50), seeds(20)
    inputs, targets = masked(ids, row_seeds, MASKING)
    for index in range(len(ids)):
        expected = mask(ids[index].tolist(), int(row_seeds[index]), 4, {0, 1, 4}, 60, 0.15)
        assert expected == (inputs[index].tolist(), targets[index].tolist())


@pytest.mark.parametrize("most", [1, 4, 15, 100])
def test_at_most_so_many_are_masked(most: int) -> None:
    """As the reference draws them, whether the limit cuts all rows, some or none."""
    ids, row_seeds = rows(20, 50), seeds(20)
    masking = replace(MASKING, share=0.3, most=most)
    inputs, targets = masked(ids, row_seeds, masking)
    for index in range(len(ids)):
        seed = int(row_seeds[index])
        expected = mask(ids[index].tolist(), seed, 4, {0, 1, 4}, 60, 0.3, most)
        assert expected == (inputs[index].tolist(), targets[index].tolist())
    assert int((targets != -100).sum(dim=1).max()) == min(most, 18)


def test_which_masks_remain_does_not_depend_on_the_place() -> None:
    """The limit takes no part of a row more often than another."""
    masking = replace(MASKING, share=1.0, most=5)
    chosen = masked(torch.full((4000, 21), 7), seeds(4000), masking)[1] != -100
    assert chosen.sum(dim=1).tolist() == [5] * 4000
    assert chosen.float().mean(dim=0).tolist() == pytest.approx([0.25] * 20, abs=0.03)


def test_shares_are_those_of_bert() -> None:
    """15 % chosen, of these 80 % masked, 10 % random, 10 % kept; specials and padding never."""
    ids = rows(400, 512)
    inputs, targets = masked(ids, seeds(400), MASKING)
    tokens = ids[:, :-1]
    maskable = (tokens != -1) & ~torch.isin(tokens, torch.tensor([0, 1, 4]))
    chosen = targets != -100
    assert not (chosen & ~maskable).any()
    assert torch.equal(inputs[~chosen], tokens.clamp(min=0)[~chosen])
    assert float(chosen[maskable].float().mean()) == pytest.approx(0.15, abs=0.004)
    is_masked = inputs[chosen] == 4
    is_kept = inputs[chosen] == targets[chosen]
    assert float(is_masked.float().mean()) == pytest.approx(0.8, abs=0.01)
    # A random token is the same one in 1 of 57 cases.
    assert float(is_kept.float().mean()) == pytest.approx(0.1 + 0.1 / 57, abs=0.01)
    random = inputs[chosen][~is_masked & ~is_kept]
    assert set(random.tolist()) == set(range(60)) - {0, 1, 4}


def test_the_default_share_is_that_of_bert() -> None:
    """15 % (1810.04805): models that were trained so are continued so."""
    assert 0.15 == LoopConfig().mask_share
    assert LoopConfig().max_masks is None


def test_division_of_a_batch_changes_nothing() -> None:
    """A row is masked by its own seed, whichever rows stand beside it."""
    ids, row_seeds = rows(6, 30), seeds(6)
    together = masked(ids, row_seeds, MASKING)
    for index in (0, 5):
        part = slice(index, index + 1)
        alone = masked(ids[part], row_seeds[part], MASKING)
        assert all(torch.equal(a, b[part]) for a, b in zip(alone, together, strict=True))
    again = masked(ids, row_seeds + 1, MASKING)
    assert not torch.equal(again[1], together[1])


def test_masking_of_a_tokenizer(byte_tokenizer: Tokenizer) -> None:
    """The mask token is that of tokenizer_config.json, else one with a name of the field."""
    added = (*byte_tokenizer.added_tokens, AddedToken("<mask>", 257), AddedToken("<hole>", 258))
    tokenizer = replace(byte_tokenizer, added_tokens=added)
    expected = Masking(mask_id=257, special_ids=(10, 256, 257, 258), n_ids=259, share=0.3)
    assert Masking.of(tokenizer, separator=(256, 10), share=0.3) == expected
    for named in ("<hole>", {"content": "<hole>"}):
        config = {"mask_token": named}
        assert Masking.of(replace(tokenizer, config=config)).mask_id == 258


def test_without_a_mask_token(byte_tokenizer: Tokenizer) -> None:
    """The message says what is missing and what to add."""
    with pytest.raises(ValueError, match=r"no mask token \(\[MASK\] or <mask>\).*add it"):
        Masking.of(byte_tokenizer)
    config = {"mask_token": "<gap>"}
    with pytest.raises(ValueError, match=r"no mask token \(<gap>\)"):
        Masking.of(replace(byte_tokenizer, config=config))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mask_id": 60}, "mask_id is 60; an id below 60"),
        ({"share": 0.0}, "share is 0.0"),
        ({"special_ids": tuple(range(60))}, "every id is special"),
    ],
)
def test_bad_masking(wrong: dict[str, Any], message: str) -> None:
    """Values that cannot work are refused when they are given."""
    with pytest.raises(ValueError, match=message):
        replace(MASKING, **wrong)
