"""A donor, another model that has the new tokens; its rows by orthogonal matching pursuit.

Owns how a token of the donor is found (by its bytes) and how its row becomes weights over tokens
that donor and old model share; the combination is then taken of the old model's rows. No training,
no text. Nothing of the donor's values gets into the model, only its geometry. torch is imported
when a function runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.models.folder import load_own_tokenizer
from vocabshift.models.load import load_model
from vocabshift.models.saved import open_saved
from vocabshift.models.tables import Matrices, find_matrices
from vocabshift.surgery.initialize import compute_dtype
from vocabshift.surgery.row_sources import Ids, RowSources, Sparse
from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch


_NOTHING = 1e-5
"""A residual or a new direction shorter than this share of what it came from is rounding."""


def matching_pursuit(
    targets: torch.Tensor, atoms: torch.Tensor, n_atoms: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """A combination of few atoms for each target: their indices (n, k) and coefficients (n, k).

    Pati, Rezaiifar & Krishnaprasad 1993; for embeddings: Goddard & Fernandes Neto 2025,
    "Training-Free Tokenizer Transplantation". Each round takes the atom whose direction is nearest
    to what is left, and fits all atoms taken so far anew by least squares (here through an
    orthonormal basis that grows by one vector a round, which gives the same residual).

    `targets` (n, hidden) and `atoms` (m, hidden) in float32 or float64, k = min(n_atoms, m,
    hidden). A target that needs fewer atoms has coefficients of 0 from there on.
    """
    import torch

    n, hidden = targets.shape
    k = min(n_atoms, len(atoms), hidden)
    lengths = atoms.norm(dim=1)
    divisors = lengths.clamp_min(torch.finfo(atoms.dtype).tiny)
    enough = targets.norm(dim=1) * _NOTHING
    residual = targets.clone()
    basis = targets.new_zeros((n, k, hidden))
    triangle = torch.eye(k, dtype=targets.dtype, device=targets.device).repeat(n, 1, 1)
    projections = targets.new_zeros((n, k))
    indices = torch.zeros((n, k), dtype=torch.int64, device=targets.device)
    active = residual.norm(dim=1) > enough
    taken = torch.zeros((n, len(atoms)), dtype=torch.bool, device=targets.device)
    for step in range(k):
        # Divided here and not before: a dictionary of directions would be as large as the atoms.
        nearness = (residual @ atoms.T).abs_().div_(divisors).masked_fill_(taken, -1)
        chosen = nearness.argmax(dim=1)
        indices[:, step] = chosen
        taken[torch.arange(n, device=targets.device), chosen] = True
        new, shares = _orthogonal_part(atoms[chosen], basis[:, :step])
        length = new.norm(dim=1)
        active = active & (length > lengths[chosen] * _NOTHING)
        unit = torch.where(active.unsqueeze(1), new / length.unsqueeze(1), 0)
        basis[:, step] = unit
        triangle[:, :step, step] = torch.where(active.unsqueeze(1), shares, 0)
        triangle[:, step, step] = torch.where(active, length, 1)
        projections[:, step] = (unit * residual).sum(1)
        residual = residual - projections[:, step, None] * unit
        active = active & (residual.norm(dim=1) > enough)
        if not bool(active.any()):
            break
    solved = torch.linalg.solve_triangular(triangle, projections.unsqueeze(2), upper=True)
    return indices, solved.squeeze(2)


def _orthogonal_part(
    vectors: torch.Tensor, basis: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each vector (n, hidden) less its part in its basis (n, j, hidden), and that part (n, j).

    Twice: one pass of Gram and Schmidt leaves what rounding added.
    """
    import torch

    shares = torch.einsum("njh,nh->nj", basis, vectors)
    rest = vectors - torch.einsum("njh,nj->nh", basis, shares)
    more = torch.einsum("njh,nh->nj", basis, rest)
    return rest - torch.einsum("njh,nj->nh", basis, more), shares + more


N_ATOMS = 64
_BLOCK = 2**24
"""Numbers of one block of nearnesses or of bases: 64 MiB in float32."""


@dataclass(frozen=True, eq=False)
class Donor:
    """A donor's tokenizer and its rows."""

    tokenizer: Tokenizer
    embeddings: torch.Tensor  # (donor rows, donor hidden)
    head: torch.Tensor | None = None  # the same for an untied head

    @classmethod
    def of_model(cls, model: Any, tokenizer: Any) -> Donor:
        """The rows of a model in memory; they are not copied."""
        return cls._of_tables(find_matrices(model), as_tokenizer(tokenizer))

    @classmethod
    def load(cls, source: str | Path) -> Donor:
        """From a model folder or Hub name; of safetensors only the tables are read."""
        tokenizer = load_own_tokenizer(source)
        if tokenizer.kind != "BPE":
            raise VocabMismatchError(
                f"the donor's tokenizer is a {tokenizer.kind} one; a BPE tokenizer is needed"
            )
        saved = open_saved(source)
        if saved is not None:
            return cls._of_tables(saved.matrices, as_tokenizer(tokenizer))
        return cls.of_model(load_model(source), tokenizer)

    @classmethod
    def _of_tables(cls, matrices: Matrices, ours: Tokenizer) -> Donor:
        if matrices.rows < ours.row_count:
            raise VocabMismatchError(
                f"the donor has {matrices.rows} rows, and its tokenizer needs {ours.row_count}; "
                "give the tokenizer that belongs to it"
            )
        head = next((table.weight for table in matrices.tables if table.role == "head"), None)
        return cls(ours, matrices.tables[0].weight, None if matrices.tied else head)


def by_matching_pursuit(
    donor: Donor,
    sources: RowSources,
    *,
    old: Tokenizer,
    new: Tokenizer,
    head: bool,
    n_atoms: int = N_ATOMS,
) -> Sparse:
    """Weights over old tokens for each made token that the donor has; `head`: from its head.

    VocabMismatchError where donor and old tokenizer share no token.
    """
    import torch

    matrix = donor.head if head and donor.head is not None else donor.embeddings
    theirs = {data: i for i, data in token_bytes.token_bytes(donor.tokenizer).items()}
    ours = {data: i for i, data in token_bytes.token_bytes(old).items()}
    shared = sorted((old_id, theirs[data]) for data, old_id in ours.items() if data in theirs)
    if not shared:
        raise VocabMismatchError("the donor's tokenizer shares no token with the old one")
    new_bytes = token_bytes.token_bytes(new)
    found = [
        (place, theirs[new_bytes[new_id]])
        for place, new_id in enumerate(sources.made.tolist())
        if new_bytes.get(new_id) in theirs
    ]
    dtype = compute_dtype(matrix)
    old_ids = np.array([old_id for old_id, _ in shared], dtype=np.int64)
    atoms = _rows(matrix, [donor_id for _, donor_id in shared], dtype)
    block = max(1, _BLOCK // max(len(atoms), matrix.shape[1] * min(n_atoms, len(atoms))))
    ids, weights, lengths = [], [], []
    for start in range(0, len(found), block):
        rows = _rows(matrix, [donor_id for _, donor_id in found[start : start + block]], dtype)
        indices, values = matching_pursuit(rows, atoms, n_atoms)
        used = values != 0
        used[:, 0] = True  # a donor's row of zeros is a row of zeros
        lengths.append(used.sum(1).numpy(force=True))
        ids.append(old_ids[indices[used].numpy(force=True)])
        weights.append(values[used].to(torch.float64).numpy(force=True))
    return _sparse([place for place, _ in found], lengths, ids, weights)


def _rows(matrix: torch.Tensor, ids: list[int], dtype: torch.dtype) -> torch.Tensor:
    import torch

    return matrix.index_select(0, torch.tensor(ids, device=matrix.device)).to(dtype)


def _sparse(
    places: list[int], lengths: list[Ids], ids: list[Ids], weights: list[np.ndarray]
) -> Sparse:
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
    return Sparse(
        places=np.array(places, dtype=np.int64),
        offsets=ends,
        ids=np.concatenate([np.zeros(0, np.int64), *ids]),
        weights=np.concatenate([np.zeros(0), *weights]),
    )
