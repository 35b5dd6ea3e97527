"""OBPE written plainly: count all pairs in every language, merge the best, count all again.

Source: Patil et al., "Overlap-based Vocabulary Generation Improves Cross-lingual Transfer Among
Related Languages" (ACL 2022), with the generalized mean of the authors' code
(docs/algorithms/overlap.md). Ties are ours: equal scores go to the smaller (left_id, right_id).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from reference import bpe


def score(counts: Sequence[int], is_high: Sequence[bool], alpha: float, power: float) -> float:
    """Of a pair, from its counts by language."""
    overlap = 0.0
    for low, f_low in enumerate(counts):
        if not is_high[low]:
            means = [mean(f, f_low, power) for f, high in zip(counts, is_high, strict=True) if high]
            overlap += max(means)
    return alpha * float(sum(counts)) + (1 - alpha) * overlap


def mean(x: int, y: int, power: float) -> float:
    """Generalized mean of a negative power."""
    small, large = float(min(x, y)), float(max(x, y))
    if small == 0 or math.isinf(power):
        return small
    return small * math.pow((1 + math.pow(large / small, power)) / 2, 1 / power)


def train(
    words: Mapping[bytes, Sequence[int]],
    vocab_size: int,
    is_high: Sequence[bool],
    *,
    alpha: float = 0.5,
    power: float = -2.0,
    min_frequency: int = 1,
) -> tuple[list[bytes], list[tuple[int, int, int, int]]]:
    """Tokens by id, and merges in order, for words with their counts in each language."""
    tokens = bpe.alphabet()
    id_of = {token[0]: token_id for token_id, token in enumerate(tokens)}
    sequences = {word: [id_of[byte] for byte in word] for word in words}
    merges: list[tuple[int, int, int, int]] = []
    while len(tokens) < vocab_size:
        by_language: list[Counter[tuple[int, int]]] = [Counter() for _ in is_high]
        for word, ids in sequences.items():
            for pair in pairwise(ids):
                for counter, count in zip(by_language, words[word], strict=True):
                    counter[pair] += count
        all_pairs = {pair for counter in by_language for pair in counter}
        counts = {pair: [counter[pair] for counter in by_language] for pair in all_pairs}
        candidates = [
            (-score(of_pair, is_high, alpha, power), pair)
            for pair, of_pair in counts.items()
            if sum(of_pair) >= max(min_frequency, 1)
        ]
        if not candidates:
            break
        _, pair = min(candidates)
        product = tokens[pair[0]] + tokens[pair[1]]
        assert product not in tokens
        tokens.append(product)
        merges.append((*pair, len(tokens) - 1, sum(counts[pair])))
        sequences = {
            word: bpe.merged(ids, pair, len(tokens) - 1) for word, ids in sequences.items()
        }
    return tokens, merges
