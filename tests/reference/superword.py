"""The superword stage written plainly: every piece is encoded by rank, then merged like any other.

Source: docs/algorithms/superwords.md, with IST and SuperBPE (arXiv 2503.13423).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reference.bpe import Merge, learn, merged


def encode(piece: bytes, tokens: Sequence[bytes], merges: Iterable[Merge]) -> list[int]:
    """Ids of a piece. Rank by rank is the same as lowest rank first: no merge of a trained list
    makes room for an earlier one."""
    id_of = {token[0]: token_id for token_id, token in enumerate(tokens[:256])}
    ids = [id_of[byte] for byte in piece]
    for left, right, product, _ in merges:
        ids = merged(ids, (left, right), product)
    return ids


def train(
    pieces: Iterable[tuple[bytes, int]],
    stage1_tokens: Sequence[bytes],
    stage1_merges: Iterable[Merge],
    vocab_size: int,
    *,
    min_frequency: int = 1,
    max_words: int | None = None,
    max_token_bytes: int | None = None,
    refused: Callable[[bytes], bool] = lambda _: False,
) -> tuple[list[bytes], list[Merge]]:
    """Tokens by id, and the merges of stage 2 in order, for pieces with their (weighted) counts."""
    tokens = list(stage1_tokens)
    stage1_merges = list(stage1_merges)
    sequences = [(encode(piece, tokens, stage1_merges), count) for piece, count in pieces]

    def allowed(product: bytes) -> bool:
        if product in tokens or refused(product):  # for good: no id is ever given twice
            return False
        if max_token_bytes is not None and len(product) > max_token_bytes:
            return False
        words = [word for word in product.split(b" ") if word]
        return max_words is None or len(words) <= max_words

    merges = learn(tokens, sequences, vocab_size, min_frequency, allowed)
    return tokens, merges
