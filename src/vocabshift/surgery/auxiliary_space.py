"""Vectors of a tokenizer's tokens from text alone: what stands near what, in few dimensions.

Owns the counting of neighbours in a corpus and their positive pointwise mutual information (PPMI),
reduced by a truncated eigendecomposition; Levy & Goldberg 2014 show it to be what word2vec and
fastText approximate. Knows nothing of models. The same corpus and seed give the same vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.surgery.token_map import Ids, Weights

if TYPE_CHECKING:
    import torch

    from vocabshift.text.corpus import Corpus

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
    """How often b stands at most `window` tokens behind a, inside a document.

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
