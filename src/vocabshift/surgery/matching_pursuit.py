"""Orthogonal matching pursuit: a row as a combination of a few rows of a dictionary.

Pure tensors, many targets at once. Pati, Rezaiifar & Krishnaprasad 1993; for embeddings: Goddard &
Fernandes Neto 2025, "Training-Free Tokenizer Transplantation". Each round takes the atom whose
direction is nearest to what is left, and fits all atoms taken so far anew by least squares (here
through an orthonormal basis that grows by one vector a round, which gives the same residual).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_NOTHING = 1e-5
"""A residual or a new direction shorter than this, beside what it came from, is rounding."""


def matching_pursuit(
    targets: torch.Tensor, atoms: torch.Tensor, n_atoms: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices (n, k) of the atoms of each target, and their coefficients (n, k).

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
