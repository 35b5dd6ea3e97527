"""The definitions of the metrics, word by word and line by line: slow and plain to see."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

Span = tuple[int, int]


def word_spans(line: str) -> list[Span]:
    """Bytes of each word of a line, as `str.split` cuts it."""
    spans = []
    at = 0
    for word in line.split():
        at = line.index(word, at)
        begin = len(line[:at].encode())
        spans.append((begin, begin + len(word.encode())))
        at += len(word)
    return spans


def fragmented_words(line: str, tokens: Sequence[Span]) -> int:
    """Words in which some token begins behind the first byte."""
    return sum(any(begin < start < end for start, _ in tokens) for begin, end in word_spans(line))


def tokens_of_words(line: str, tokens: Sequence[Span]) -> list[float]:
    """Tokens of each word; a token is shared by the words it touches, whitespace goes with the
    word behind it, or else with the last one."""
    words = word_spans(line)
    shares = [0.0] * len(words)
    for start, end in tokens:
        touched = [i for i, (begin, stop) in enumerate(words) if start < stop and end > begin]
        if not touched:
            behind = [i for i, (begin, _) in enumerate(words) if begin >= end]
            touched = [behind[0] if behind else len(words) - 1]
        for i in touched:
            shares[i] += 1 / len(touched)
    return shares


def ranks(words: Sequence[str]) -> dict[str, int]:
    """One plus the number of words that are more frequent."""
    counts = Counter(words)
    return {
        word: 1 + sum(other > count for other in counts.values()) for word, count in counts.items()
    }


def renyi_entropy(tokens: Sequence[int], alpha: float) -> float:
    """H = log2(sum p^a) / (1 - a) in bits (Zouhar et al. 2023, eq. 4); Shannon for a = 1."""
    counts = Counter(tokens)
    shares = [count / len(tokens) for count in counts.values()]
    if alpha == 1:
        return -sum(share * math.log2(share) for share in shares)
    return math.log2(sum(share**alpha for share in shares)) / (1 - alpha)


def renyi_bootstrap(
    lines: Sequence[Sequence[int]], alpha: float, n_resamples: int, seed: int
) -> Span | tuple[float, float]:
    """95 % interval of the entropy itself, computed anew on each resample of lines."""
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(n_resamples):
        drawn = generator.integers(0, len(lines), len(lines))
        values.append(renyi_entropy([token for i in drawn for token in lines[i]], alpha))
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def gini(totals: Sequence[float]) -> float:
    """Mean absolute difference of all pairs over twice the mean."""
    n = len(totals)
    pairs = sum(abs(one - other) for one in totals for other in totals)
    return pairs / (2 * n * n * (sum(totals) / n))


def levenshtein(one: Sequence[int], other: Sequence[int]) -> int:
    """Fewest tokens put in, taken out or replaced (Wagner and Fischer 1974)."""
    row = list(range(len(other) + 1))
    for i, token in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, wanted in enumerate(other, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (token != wanted))
    return row[-1]


def is_superword(data: bytes) -> bool:
    """Text on both sides of a space."""
    return re.search(rb"[^\t-\r ].* .*[^\t-\r ]", data, re.DOTALL) is not None
