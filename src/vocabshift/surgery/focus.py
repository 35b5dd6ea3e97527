"""FOCUS: a new token as a sparse mixture of the kept tokens that are most similar to it.

Dobler & de Melo 2023: similarity is the cosine in an auxiliary space, and sparsemax (Martins &
Astudillo 2016) turns it into weights. We differ in two ways: a token that does not occur in the
text keeps the mean of its old tokens instead of noise, and the space is not fastText's but the
positive pointwise mutual information (PPMI) of neighbours in a corpus, reduced by a truncated
eigendecomposition; Levy & Goldberg 2014 show it to be what word2vec and fastText approximate. The
same corpus and seed give the same vectors. torch is imported when a function runs. Knows nothing of
models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.surgery.row_sources import Ids, RowSources, Sparse, Weights
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch

    from vocabshift.text.corpus import Corpus

_BLOCK = 2**24
"""Similarities computed at a time: 64 MiB."""

_FEW = 128
"""Scores of a row that sparsemax sorts at first."""


def by_similarity(vectors: torch.Tensor, sources: RowSources) -> Sparse:
    """Weights over copied tokens for each made token; `vectors` (new rows, dimensions).

    Tokens without a vector (zeros) are not made in this way and are not used for others.
    CorpusError if no copied token has a vector.
    """
    import torch

    lengths = vectors.norm(dim=1)
    directions = vectors / lengths.clamp_min(torch.finfo(vectors.dtype).tiny).unsqueeze(1)
    seen = (lengths > 0).numpy()
    drawn_from = seen[sources.copied_to]
    if not drawn_from.any():
        raise CorpusError(
            "the text of focus shows none of the tokens that old and new tokenizer share; give "
            "text of the languages that both know"
        )
    old_ids = sources.copied_from[drawn_from]
    anchors = directions[torch.from_numpy(sources.copied_to[drawn_from])]
    places = np.flatnonzero(seen[sources.made])
    made = torch.from_numpy(sources.made[places])
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


WINDOW = 5  # tokens on either side
DIMENSIONS = 256
_ROUNDS = 8  # of subspace iteration
_SPARE = 16  # dimensions iterated beyond those kept
_DOCUMENTS = 4096  # encoded at a time


def auxiliary_vectors(
    tokenizer: Tokenizer,
    corpus: Corpus,
    *,
    seed: int = 0,
    window: int = WINDOW,
    dimensions: int = DIMENSIONS,
) -> torch.Tensor:
    """Vectors (rows of the tokenizer, dimensions), float32; of a token that does not occur: zeros.

    CorpusError where the corpus holds no text.
    """
    keys, counts = neighbour_counts(tokenizer, corpus, window=window)
    rows, columns, values = ppmi(keys, counts, tokenizer.row_count)
    return _factors((rows, columns), values, tokenizer.row_count, dimensions, seed)


def neighbour_counts(tokenizer: Tokenizer, corpus: Corpus, *, window: int) -> tuple[Ids, Ids]:
    """How often b follows a within `window` tokens, inside a document.

    Keys a * rows + b, ascending, and their counts.
    """
    encoder, size = Encoder(tokenizer), tokenizer.row_count
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for documents in corpus.batches():
        texts = list(documents.texts())
        for start in range(0, len(texts), _DOCUMENTS):
            ids, offsets = encoder.encode_batch(texts[start : start + _DOCUMENTS])
            found = _pairs(ids.astype(np.int64), offsets, window, size)
            own, own_counts = np.unique(found, return_counts=True)
            keys, counts = _merged(keys, counts, own, own_counts)
    return keys, counts


def _pairs(ids: Ids, offsets: Ids, window: int, size: int) -> Ids:
    document = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    pairs = [np.zeros(0, np.int64)]
    for distance in range(1, min(window, len(ids) - 1) + 1):
        inside = document[:-distance] == document[distance:]
        pairs.append((ids[:-distance] * size + ids[distance:])[inside])
    return np.concatenate(pairs)


def _merged(keys: Ids, counts: Ids, more: Ids, more_counts: Ids) -> tuple[Ids, Ids]:
    joined, place = np.unique(np.concatenate([keys, more]), return_inverse=True)
    total = np.zeros(len(joined), np.int64)
    np.add.at(total, place, np.concatenate([counts, more_counts]))
    return joined, total


def ppmi(keys: Ids, counts: Ids, size: int) -> tuple[Ids, Ids, Weights]:
    """Rows, columns and values above 0 of the symmetric PPMI matrix (size, size).

    log(n_ab * N / (n_a * n_b)): n_ab how often a and b are neighbours in either order, n_a the sum
    of a's row of them, N the sum of all.
    """
    left, right = keys // size, keys % size
    both, place = np.unique(
        np.concatenate([left * size + right, right * size + left]), return_inverse=True
    )
    together = np.bincount(place, weights=np.concatenate([counts, counts]), minlength=len(both))
    rows, columns = both // size, both % size
    alone = np.bincount(rows, weights=together, minlength=size)
    values = np.log(together * alone.sum() / (alone[rows] * alone[columns]))
    kept = values > 0
    return rows[kept], columns[kept], values[kept]


def _factors(
    places: tuple[Ids, Ids], values: Weights, size: int, dimensions: int, seed: int
) -> torch.Tensor:
    """Eigenvectors of the largest |eigenvalues|, each times the root of it: (size, dimensions).

    By subspace iteration from a random start.
    """
    import torch

    seen, inner = np.unique(np.stack(places), return_inverse=True)
    n_seen = len(seen)
    n = min(dimensions + _SPARE, n_seen)
    generator = torch.Generator().manual_seed(seed)
    basis = torch.randn((n_seen, n), generator=generator, dtype=torch.float64)
    matrix = torch.sparse_coo_tensor(
        torch.from_numpy(inner.reshape(2, -1)),
        torch.from_numpy(values),
        (n_seen, n_seen),
        is_coalesced=True,
        check_invariants=True,
    )
    for _ in range(_ROUNDS):
        basis, _upper = torch.linalg.qr(torch.sparse.mm(matrix, basis))
    small = basis.T @ torch.sparse.mm(matrix, basis)
    found, vectors = torch.linalg.eigh((small + small.T) / 2)
    order = found.abs().argsort(descending=True)[:dimensions]
    result = torch.zeros((size, dimensions))
    own = (basis @ vectors[:, order]) * found[order].abs().sqrt()
    result[torch.from_numpy(seen), : len(order)] = own.float()
    return result
