"""TokenAdapt's rule as an initializer, to compare with (arXiv 2505.09738, section 3).

A new row is 0.7 of a local mixture and 0.3 of a global one. Local: the token's old tokens,
weighted by the softmax of (similarity to the token + share of its length) / 2. Global: the five
most similar kept tokens, weighted by the softmax of their similarity. Both have temperature 0.3.
One thing differs: the paper takes similarities from a text embedding model; here they are cosines
in the space in which our `focus` compares tokens, so that no other model is needed. Old tokens
that the text does not show have similarity 0.

Importing this file registers the name "tokenadapt" for `transfer(init=…)`.
"""

from __future__ import annotations

import numpy as np

from vocabshift.surgery.focus import auxiliary_vectors
from vocabshift.surgery.methods import InitRequest, initializer
from vocabshift.surgery.row_sources import Sparse, with_sparse
from vocabshift.surgery.rows import InitContext
from vocabshift.tokenizer.token_bytes import token_bytes

TEMPERATURE = 0.3
GLOBAL_SHARE = 0.3
NEIGHBOURS = 5


@initializer("tokenadapt", "its old tokens, mixed with the most similar kept ones", needs="corpus")
def token_adapt(request: InitRequest) -> InitContext:
    """Rows of new tokens by the rule above; what the text does not show keeps the mean."""
    sources, corpus = request.sources, request.options.corpus
    vectors = auxiliary_vectors(request.new, corpus, seed=request.options.seed).numpy()
    lengths = np.linalg.norm(vectors, axis=1)
    unit = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)[:, None]
    new_id = sources.old_to_new
    is_seen = lengths[sources.copied_to] > 0
    kept, kept_new = sources.copied_from[is_seen], sources.copied_to[is_seen]
    sizes = {token: len(data) for token, data in token_bytes(request.old).items()}
    places, ids, weights, counts = [], [], [], [0]
    for place, token in enumerate(sources.made.tolist()):
        own = sources.pieces[sources.offsets[place] : sources.offsets[place + 1]]
        if not len(own) or lengths[token] == 0:
            continue
        seen = [new_id.get(old) for old in own.tolist()]
        similar = np.array([0.0 if new is None else unit[new] @ unit[token] for new in seen])
        shares = np.array([sizes.get(old, 1) for old in own.tolist()], dtype=float)
        local = softmax((similar + shares / shares.sum()) / 2)
        found = unit[kept_new] @ unit[token]
        nearest = np.argsort(-found, kind="stable")[:NEIGHBOURS]
        places.append(place)
        ids += [own, kept[nearest]]
        weights += [(1 - GLOBAL_SHARE) * local, GLOBAL_SHARE * softmax(found[nearest])]
        counts.append(counts[-1] + len(own) + len(nearest))
    if not places:
        return request.rows()
    sparse = Sparse(
        np.array(places), np.array(counts), np.concatenate(ids), np.concatenate(weights)
    )
    return request.rows(with_sparse(sources, sparse))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Shares of one row of scores, at the rule's temperature."""
    powers = np.exp((scores - scores.max()) / TEMPERATURE)
    return powers / powers.sum()
