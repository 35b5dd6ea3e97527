"""Initializers: what they compute, in which precision, and that blocks do not matter."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vocabshift.models import tables  # noqa: E402
from vocabshift.surgery import initialize  # noqa: E402

PIECES = torch.tensor([3, 3, 1, 0, 2])
OFFSETS = torch.tensor([0, 3, 4, 5])


@pytest.fixture
def old():
    generator = torch.Generator().manual_seed(1)
    return torch.randn((6, 4), generator=generator)


@pytest.fixture
def used():
    return torch.tensor([0, 1, 2, 3])  # rows 4 and 5 are padding


def test_fvt_is_the_mean_of_the_pieces(old, used) -> None:
    """A piece that occurs twice counts twice; one piece is copied exactly."""
    rows = initialize.fvt(old, used, 0)(PIECES, OFFSETS)
    assert torch.equal((old[3] + old[3] + old[1]) / 3, rows[0])
    assert torch.equal(old[[0, 2]], rows[1:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_fvt_sums_in_float32(old, used, dtype) -> None:
    """Sums in half precision would lose the smaller rows."""
    narrow = old.to(dtype)
    rows = initialize.fvt(narrow, used, 0)(PIECES, OFFSETS)
    assert torch.float32 == rows.dtype
    assert torch.equal((narrow[3].float() * 2 + narrow[1].float()) / 3, rows[0])


def test_blocks_do_not_change_fvt(old, used) -> None:
    """Offsets of a later block do not begin at zero."""
    make = initialize.fvt(old, used, 0)
    late = make(PIECES[3:], OFFSETS[1:])
    assert torch.equal(make(PIECES, OFFSETS)[1:], late)


def test_mean_leaves_padding_out(old, used) -> None:
    """Only rows of tokens say what an average token is."""
    old[4:] = 1000
    rows = initialize.mean(old, used, 0)(PIECES, OFFSETS)
    assert (3, 4) == tuple(rows.shape)
    torch.testing.assert_close(old[:4].mean(0).expand(3, 4), rows)


def test_random_follows_seed_mean_and_deviation() -> None:
    """Each dimension keeps its own mean and deviation; the seed decides everything else."""
    generator = torch.Generator().manual_seed(2)
    old = torch.randn((500, 3), generator=generator) * torch.tensor([1.0, 5.0, 0.1]) + 2
    offsets = torch.arange(20_001)
    used = torch.arange(500)
    rows = initialize.random(old, used, 7)(offsets[:-1] % 500, offsets)
    torch.testing.assert_close(old.mean(0), rows.mean(0), atol=0.15, rtol=0)
    torch.testing.assert_close(old.std(0), rows.std(0), atol=0, rtol=0.05)
    assert torch.equal(rows, initialize.random(old, used, 7)(offsets[:-1] % 500, offsets))
    assert not torch.equal(rows, initialize.random(old, used, 8)(offsets[:-1] % 500, offsets))


def test_zeros(old, used) -> None:
    rows = initialize.zeros(old.bfloat16(), used, 0)(PIECES, OFFSETS)
    assert torch.equal(torch.zeros((3, 4)), rows)


def test_blocks_cover_every_token_once(monkeypatch) -> None:
    """A token with more pieces than a block holds still is one block."""
    monkeypatch.setattr(tables, "BLOCK_ELEMENTS", 8)
    offsets = np.array([0, 1, 2, 9, 10, 12])
    ranges = list(initialize.blocks(offsets, 4))
    assert [(0, 2), (2, 3), (3, 4), (4, 5)] == ranges
    assert [] == list(initialize.blocks(np.array([0]), 4))


def test_normal_has_the_covariance() -> None:
    """Correlated dimensions stay correlated; the seed decides everything else."""
    generator = torch.Generator().manual_seed(2)
    spread = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.3]])
    old = torch.randn((800, 3), generator=generator) @ spread + 2
    offsets, used = torch.arange(40_001), torch.arange(800)
    rows = initialize.normal(old, used, 7)(offsets[:-1] % 800, offsets)
    torch.testing.assert_close(old.mean(0), rows.mean(0), atol=0.05, rtol=0)
    torch.testing.assert_close(old.T.cov(correction=0), rows.T.cov(), atol=0.15, rtol=0.05)
    assert torch.equal(rows, initialize.normal(old, used, 7)(offsets[:-1] % 800, offsets))
    assert not torch.equal(rows, initialize.normal(old, used, 8)(offsets[:-1] % 800, offsets))


def test_normal_of_a_singular_covariance() -> None:
    """Fewer rows than dimensions, and a constant one: new rows stay in the span of the old."""
    generator = torch.Generator().manual_seed(4)
    old = torch.randn((3, 6), generator=generator)
    old[:, 2] = 5
    offsets, used = torch.arange(2001), torch.arange(3)
    rows = initialize.normal(old, used, 7)(offsets[:-1] % 3, offsets)
    assert bool(torch.isfinite(rows).all())
    torch.testing.assert_close(torch.full((2000,), 5.0), rows[:, 2], atol=1e-4, rtol=0)
    assert 2 == torch.linalg.matrix_rank(rows - old.mean(0), rtol=1e-3)
    torch.testing.assert_close(old.T.cov(correction=0), rows.T.cov(), atol=0.2, rtol=0.1)


def test_mean_and_covariance_in_blocks(monkeypatch, old, used) -> None:
    """Blocks change nothing; padding is left out."""
    monkeypatch.setattr(tables, "BLOCK_ELEMENTS", 8)
    mean, covariance = initialize.mean_and_covariance(old, used)
    torch.testing.assert_close(old[:4].mean(0), mean)
    torch.testing.assert_close(
        old[:4].double().T.cov(correction=0), covariance, rtol=1e-5, atol=1e-6
    )
