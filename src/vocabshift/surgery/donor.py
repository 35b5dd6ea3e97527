"""A donor: another model that has the new tokens, and what its rows say about them.

Owns how a token of the donor is found (by its bytes) and how its row becomes weights over tokens
that donor and old model share; the combination is then taken of the old model's rows. No training,
no text. Nothing of the donor's values gets into the model, only its geometry.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.bpe import token_bytes
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import initialize
from vocabshift.surgery.matching_pursuit import matching_pursuit
from vocabshift.surgery.matrices import Matrices, find_matrices
from vocabshift.surgery.mixtures import Sparse
from vocabshift.surgery.token_map import Ids, TokenMap

if TYPE_CHECKING:
    import torch

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
        from vocabshift.bpe.load import as_tokenizer

        return cls._of_tables(find_matrices(model), as_tokenizer(tokenizer))

    @classmethod
    def load(cls, source: str | Path) -> Donor:
        """From a model folder or Hub name; of safetensors only the tables are read."""
        from vocabshift.surgery import model_folder
        from vocabshift.surgery.saved_model import open_saved

        tokenizer = model_folder.load_own_tokenizer(source)
        if not isinstance(tokenizer, Tokenizer):
            raise VocabMismatchError(
                f"the donor's tokenizer is a {tokenizer.kind} one; a BPE tokenizer is needed"
            )
        saved = open_saved(source)
        if saved is not None:
            return cls._of_tables(saved.matrices, tokenizer)
        return cls.of_model(model_folder.load_model(source), tokenizer)

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
    token_map: TokenMap,
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
        for place, new_id in enumerate(token_map.made.tolist())
        if new_bytes.get(new_id) in theirs
    ]
    dtype = initialize.compute_dtype(matrix)
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
