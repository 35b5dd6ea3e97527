"""Pieces and weights of made tokens: by bytes, first and last, and given ones."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from vocabshift.surgery import initialize, row_sources  # noqa: E402
from vocabshift.surgery.row_sources import RowSources  # noqa: E402
from vocabshift.surgery.rows import new_matrix  # noqa: E402

REFERENCE = runpy.run_path(str(Path(__file__).parents[2] / "reference" / "initializers.py"))


def _map(pieces: list[list[int]], n_old: int) -> RowSources:
    lengths = [0, *map(len, pieces)]
    return RowSources(
        copied_from=np.arange(n_old),
        copied_to=np.arange(n_old),
        made=np.arange(n_old, n_old + len(pieces)),
        pieces=np.array([piece for own in pieces for piece in own], dtype=np.int64),
        offsets=np.cumsum(lengths),
        old_ids=np.arange(n_old),
    )


PIECES = st.lists(st.lists(st.integers(0, 8), max_size=5), max_size=7)
"""Old tokens of new ones; some have none, as bytes that the old vocabulary lacks."""


@given(PIECES, st.lists(st.integers(1, 6), min_size=9, max_size=9))
def test_weighted_is_the_mean_over_bytes(pieces, sizes) -> None:
    """A piece of three bytes counts three times, whatever the blocks."""
    old = torch.randn((9, 4), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    lengths = dict(enumerate(sizes))
    mapping = row_sources.weighted_by_bytes(_map(pieces, 9), lengths)
    rows = new_matrix(old, mapping, initialize.fvt, 9 + len(pieces), 0)[9:]
    mean = old.numpy().mean(0)
    expected = [REFERENCE["weighted"](own, lengths, old.numpy()) if own else mean for own in pieces]
    np.testing.assert_allclose(rows.numpy(), np.reshape(expected, (len(pieces), 4)), atol=1e-12)


@given(PIECES)
def test_first_and_last(pieces) -> None:
    """One piece is copied bit for bit; a tied matrix gets the mean of both; none: of all rows."""
    old = torch.randn((9, 4), generator=torch.Generator().manual_seed(3))
    mapping, n = _map(pieces, 9), 9 + len(pieces)

    def rows(own: RowSources) -> torch.Tensor:
        return new_matrix(old, own, initialize.fvt, n, 0)[9:]

    table = torch.cat([old, initialize.mean_and_std(old, torch.arange(9))[0][None]])
    first = table[[own[0] if own else 9 for own in pieces]]
    last = table[[own[-1] if own else 9 for own in pieces]]
    assert torch.equal(first, rows(row_sources.first_pieces(mapping)))
    assert torch.equal(last, rows(row_sources.last_pieces(mapping)))
    both = rows(row_sources.first_and_last_pieces(mapping))
    torch.testing.assert_close((first + last) / 2, both)


@given(PIECES, st.data())
def test_sparse_rows_replace_pieces(pieces, data) -> None:
    """Tokens that it names get its weights, the others keep the mean of their pieces."""
    old = torch.randn((9, 4), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    entry = st.lists(st.tuples(st.integers(0, 8), st.floats(-2, 2)), min_size=1, max_size=4)
    named = {i: data.draw(entry) for i in range(len(pieces)) if data.draw(st.booleans())}
    flat = [pair for own in named.values() for pair in own]
    sparse = row_sources.Sparse(
        places=np.array(list(named), dtype=np.int64),
        offsets=np.cumsum([0, *map(len, named.values())]),
        ids=np.array([token_id for token_id, _ in flat], dtype=np.int64),
        weights=np.array([weight for _, weight in flat], dtype=np.float64),
    )
    mapping = row_sources.with_sparse(_map(pieces, 9), sparse)
    rows = new_matrix(old, mapping, initialize.fvt, 9 + len(pieces), 0)[9:]
    for place, own in enumerate(pieces):
        expected = old[own].mean(0) if own else old.mean(0)
        if place in named:
            expected = sum(weight * old[token_id] for token_id, weight in named[place])
        torch.testing.assert_close(expected, rows[place])
