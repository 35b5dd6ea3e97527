"""Byte-pair encoding written plainly: count all pairs, merge the best, count all again.

The order of merges is that of `tokenizers`' BpeTrainer: the highest count first, then the smallest
(left_id, right_id). Overlapping pairs are counted; merges run left to right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise

Merge = tuple[int, int, int, int]  # left id, right id, product id, count


def alphabet() -> list[bytes]:
    """The 256 bytes by code point of their byte-level image (GPT-2's bytes_to_unicode)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [bytes([byte]) for byte in printable + others]  # the others' images follow U+00FF


def train(
    words: Mapping[bytes, int],
    vocab_size: int,
    *,
    min_frequency: int = 1,
    max_token_bytes: int | None = None,
) -> tuple[list[bytes], list[Merge]]:
    """Tokens by id, and merges in order, for words with their (weighted) counts."""
    tokens = alphabet()
    id_of = {token[0]: token_id for token_id, token in enumerate(tokens)}
    sequences = [([id_of[byte] for byte in word], count) for word, count in words.items()]

    def allowed(product: bytes) -> bool:
        return max_token_bytes is None or len(product) <= max_token_bytes

    merges = learn(tokens, sequences, vocab_size, min_frequency, allowed)
    return tokens, merges


def learn(
    tokens: list[bytes],
    sequences: list[tuple[list[int], int]],
    vocab_size: int,
    min_frequency: int,
    allowed: Callable[[bytes], bool],
) -> list[Merge]:
    """Merge until `tokens`, to which products are added, are `vocab_size`; rewrites `sequences`."""
    merges: list[Merge] = []
    while len(tokens) < vocab_size:
        counts: Counter[tuple[int, int]] = Counter()
        for ids, count in sequences:
            for pair in pairwise(ids):
                counts[pair] += count
        candidates = [
            (-count, pair)
            for pair, count in counts.items()
            if count >= max(min_frequency, 1) and allowed(tokens[pair[0]] + tokens[pair[1]])
        ]
        if not candidates:
            break
        negative, pair = min(candidates)
        product = tokens[pair[0]] + tokens[pair[1]]
        assert product not in tokens
        tokens.append(product)
        merges.append((*pair, len(tokens) - 1, -negative))
        sequences[:] = [(merged(ids, pair, len(tokens) - 1), count) for ids, count in sequences]
    return merges


def merged(ids: list[int], pair: tuple[int, int], product: int) -> list[int]:
    """`ids` with every occurrence of `pair`, from the left, replaced by `product`."""
    out: list[int] = []
    at = 0
    while at < len(ids):
        if tuple(ids[at : at + 2]) == pair:
            out.append(product)
            at += 2
        else:
            out.append(ids[at])
            at += 1
    return out
