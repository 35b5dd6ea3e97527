"""FOCUS: a new token as a sparse mixture of the kept tokens that it is most like.

Dobler & de Melo 2023: likeness is the cosine in an auxiliary space, sparsemax (Martins & Astudillo
2016) makes weights of it. Where we differ: the space comes from `auxiliary_space` instead of
fastText, and a token that the text does not show keeps the mean of its pieces instead of noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.surgery.mixtures import Sparse
from vocabshift.surgery.token_map import TokenMap

if TYPE_CHECKING:
    import torch

_BLOCK = 2**24
"""Similarities computed at a time: 64 MiB."""

_FEW = 128
"""Scores of a row that sparsemax sorts at first."""


def by_similarity(vectors: torch.Tensor, token_map: TokenMap) -> Sparse:
    """Weights over copied tokens for each made token; `vectors` (new rows, dimensions).

    Tokens without a vector (zeros) are neither made so nor drawn from. CorpusError where that
    leaves no copied token.
    """
    import torch

    lengths = vectors.norm(dim=1)
    directions = vectors / lengths.clamp_min(torch.finfo(vectors.dtype).tiny).unsqueeze(1)
    seen = (lengths > 0).numpy()
    drawn_from = seen[token_map.copied_to]
    if not drawn_from.any():
        raise CorpusError(
            "the text of focus shows none of the tokens that old and new tokenizer share; give "
            "text of the languages that both know"
        )
    old_ids = token_map.copied_from[drawn_from]
    anchors = directions[torch.from_numpy(token_map.copied_to[drawn_from])]
    places = np.flatnonzero(seen[token_map.made])
    made = torch.from_numpy(token_map.made[places])
    ids, weights, counts = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(1, np.int64)]
    for block in torch.split(made, max(1, _BLOCK // len(old_ids))):
        shares = sparsemax(directions[block] @ anchors.T)
        used = shares > 0
        counts.append(used.sum(1).numpy())
        ids.append(old_ids[used.nonzero()[:, 1].numpy()])
        weights.append(shares[used].double().numpy())
    offsets = np.cumsum(np.concatenate(counts))
    return Sparse(places, offsets, np.concatenate(ids), np.concatenate(weights))


def sparsemax(scores: torch.Tensor) -> torch.Tensor:
    """The point of the simplex nearest to each row of `scores` (n, m); mostly zeros."""
    import torch

    n = scores.shape[1]
    k = min(_FEW, n)
    while True:
        # Few stay above 0 as a rule: as long as the k-th of a row does not, k are enough.
        ordered = scores.topk(k, dim=1).values
        rank = torch.arange(1, k + 1, dtype=scores.dtype, device=scores.device)
        sums = ordered.cumsum(1)
        n_used = (1 + rank * ordered > sums).sum(1, keepdim=True)
        if k == n or bool((n_used < k).all()):
            break
        k = min(4 * k, n)
    threshold = (sums.gather(1, n_used - 1) - 1) / n_used
    return (scores - threshold).clamp_min(0)
