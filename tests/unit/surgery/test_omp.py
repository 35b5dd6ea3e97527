"""OMP: the pursuit itself against the book, and rows from a donor's geometry."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.surgery import initialize  # noqa: E402
from vocabshift.surgery.matching import match  # noqa: E402
from vocabshift.surgery.methods import InitRequest, prepare  # noqa: E402
from vocabshift.surgery.omp import (  # noqa: E402
    Donor,
    matching_pursuit,
)
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.rows import new_matrix  # noqa: E402

REFERENCE = runpy.run_path(str(Path(__file__).parents[2] / "reference" / "initializers.py"))


def _random(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(2, 8), st.integers(1, 10))
def test_pursuit_equals_the_book(seed, n_atoms, hidden, n_used) -> None:
    """The same atoms in the same order, and the same coefficients."""
    atoms, targets = _random(seed, n_atoms, hidden), _random(seed + 1, 5, hidden)
    indices, values = matching_pursuit(targets, atoms, n_used)
    for row in range(5):
        expected = REFERENCE["pursuit"](
            targets[row].numpy(), atoms.numpy(), min(n_used, n_atoms, hidden)
        )
        used = dict(zip(indices[row].tolist(), values[row].tolist(), strict=True))
        assert list(expected) == indices[row].tolist()[: len(expected)]
        for atom, value in expected.items():
            assert used[atom] == pytest.approx(value, rel=1e-6, abs=1e-9)
        rest = targets[row] - values[row] @ atoms[indices[row]]
        assert rest.norm() <= targets[row].norm() * (1 + 1e-9)


def test_a_sparse_target_is_found_again() -> None:
    """A combination of two atoms needs these two; nothing, nothing; a multiple of one, one."""
    atoms = torch.eye(6, dtype=torch.float64)
    targets = torch.stack([2 * atoms[4] - atoms[1], torch.zeros(6), 3 * atoms[2]]).double()
    indices, values = matching_pursuit(targets, atoms, 5)
    assert [4, 1] == indices[0, :2].tolist()
    assert [2, -1, 0, 0, 0] == values[0].tolist()
    assert [0] * 5 == values[1].tolist()
    assert (2, [3, 0, 0, 0, 0]) == (int(indices[2, 0]), values[2].tolist())


def test_twin_atoms_do_no_harm() -> None:
    """Rows that are the same twice (merged vocabularies have them) make no row infinite."""
    atoms = _random(1, 4, 8).repeat(2, 1)
    targets = _random(2, 3, 8)
    indices, values = matching_pursuit(targets, atoms, 8)
    assert bool(torch.isfinite(values).all())
    rest = targets - torch.einsum("nk,nkh->nh", values, atoms[indices])
    for row in range(3):
        best = np.linalg.lstsq(atoms[:4].T.numpy(), targets[row].numpy(), rcond=None)[0]
        nearest = targets[row] - torch.from_numpy(best) @ atoms[:4]
        torch.testing.assert_close(nearest, rest[row])


def test_rows_follow_the_donor(make_byte_level) -> None:
    """The donor says " ab" = 2 * "a" - "b": so say the old rows, in both tables."""
    old, new = make_byte_level(), make_byte_level("ab")
    donor_tokenizer = make_byte_level("xy", "ab", "abc")
    mapping = match(old, new, {})
    a, b = (old.model.vocab[text] for text in "ab")
    embeddings, head = _random(5, 260, 300), _random(6, 260, 300)
    ab = donor_tokenizer.model.vocab["ab"]
    embeddings[ab] = 2 * embeddings[donor_tokenizer.model.vocab["a"]]
    embeddings[ab] -= embeddings[donor_tokenizer.model.vocab["b"]]
    head[ab] = -head[donor_tokenizer.model.vocab["b"]]
    options = TransferOptions(donor=Donor(donor_tokenizer, embeddings, head))
    context = prepare(InitRequest("omp", mapping, old, new, False, options))
    rows = _random(7, 256, 12).float()
    made = new_matrix(rows, context.input, initialize.fvt, 257, 0)
    torch.testing.assert_close(2 * rows[a] - rows[b], made[256])
    made = new_matrix(rows, context.head, initialize.fvt, 257, 0)
    torch.testing.assert_close(-rows[b], made[256])
    tied = prepare(InitRequest("omp", mapping, old, new, True, options))
    assert tied.head is tied.input


def test_tokens_that_the_donor_lacks_keep_the_mean(make_byte_level) -> None:
    old, new = make_byte_level(), make_byte_level("ab", "cd")
    mapping = match(old, new, {})
    donor = Donor(make_byte_level("ab"), _random(5, 257, 300))
    options = TransferOptions(donor=donor)
    context = prepare(InitRequest("omp", mapping, old, new, False, options))
    rows = _random(7, 256, 12)
    made = new_matrix(rows, context.input, initialize.fvt, 258, 0)
    c, d = (old.model.vocab[text] for text in "cd")
    torch.testing.assert_close((rows[c] + rows[d]) / 2, made[257])
    assert 64 == context.input.offsets[1]
    assert context.input.pieces.max() < 256


def test_a_donor_of_another_world_is_refused(make_byte_level, make_metaspace) -> None:
    """No token in common: there is nothing to combine."""
    old, new = make_byte_level(), make_byte_level("ab")
    mapping = match(old, new, {})
    bare = make_byte_level()
    none = type(bare)(type(bare.model)({"xyz": 0}, ()))
    options = TransferOptions(donor=Donor(none, _random(5, 1, 3)))
    with pytest.raises(VocabMismatchError, match="shares no token"):
        prepare(InitRequest("omp", mapping, old, new, False, options))
