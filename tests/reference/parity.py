"""Parity-aware BPE written plainly: count every language, serve the worst one, count all again.

Source: Foroutan et al., "Parity-Aware Byte-Pair Encoding" (arXiv 2508.04796), with the order
of ties of the authors' program: of pairs that are as frequent, the one whose strings are last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from reference import bpe

Words = Mapping[bytes, int]


def train(
    languages: Sequence[Words],
    vocab_size: int,
    *,
    parallel: Sequence[Words] = (),
    global_merges: int = 0,
    window: int = 0,
    alpha: float = 2.0,
    min_frequency: int = 1,
) -> tuple[list[bytes], list[tuple[int, int, int]], list[int]]:
    """Tokens by id, merges in order, and whom each served (-1: all), for words by language.

    Without `parallel` words, tokens per character of the training words are compared.
    """
    tokens = bpe.alphabet()
    id_of = {token: token_id for token_id, token in enumerate(tokens)}
    trained, measured = segmented(languages, id_of), segmented(parallel or languages, id_of)
    lengths = [1 if parallel else n_characters(words) for words in languages]
    merges: list[tuple[int, int, int]] = []
    served: list[int] = []
    last: list[int] = []
    exhausted: set[int] = set()
    while len(tokens) < vocab_size:
        served_one = -1
        if len(merges) >= global_merges:
            served_one = choose(measured, lengths, exhausted, last, window, alpha)
            if served_one < 0:
                break
            last.append(served_one)
        counts: Counter[tuple[int, int]] = Counter()
        for language, sequences in enumerate(trained):
            if served_one in (language, -1):
                for ids, count in sequences:
                    for pair in pairwise(ids):
                        counts[pair] += count
        candidates = [
            (count, [image(tokens[part]) for part in pair], pair)
            for pair, count in counts.items()
            if count >= max(min_frequency, 1)
        ]
        if not candidates:
            if served_one < 0:
                break
            exhausted.add(served_one)
            continue
        pair = max(candidates)[2]
        product = tokens[pair[0]] + tokens[pair[1]]
        if product not in id_of:
            id_of[product] = len(tokens)
            tokens.append(product)
        merges.append((*pair, id_of[product]))
        served.append(served_one)
        for group in (trained, measured):
            for sequences in group:
                sequences[:] = [(bpe.merged(ids, pair, id_of[product]), n) for ids, n in sequences]
    return tokens, merges, served


def segmented(
    languages: Sequence[Words], id_of: Mapping[bytes, int]
) -> list[list[tuple[list[int], int]]]:
    """The words of each language as the ids of their bytes."""
    return [
        [([id_of[bytes([byte])] for byte in word], count) for word, count in words.items()]
        for words in languages
    ]


def choose(
    measured: Sequence[Sequence[tuple[list[int], int]]],
    lengths: Sequence[int],
    exhausted: set[int],
    last: Sequence[int],
    window: int,
    alpha: float,
) -> int:
    """The first of the languages with most tokens per length that may be served; -1: none is left.

    One that had more than alpha / n of the last merges is passed over, unless all did.
    """
    n = len(lengths)
    left = [language for language in range(n) if language not in exhausted]
    recent = Counter(last[-window:]) if window else Counter()
    free = [one for one in left if not window or recent[one] / window <= alpha / n] or left
    tokens = [sum(len(ids) * count for ids, count in sequences) for sequences in measured]
    return max(free, key=lambda one: Fraction(tokens[one], lengths[one]), default=-1)


def n_characters(words: Words) -> int:
    return sum((byte & 0xC0 != 0x80) * count for word, count in words.items() for byte in word)


def image(token: bytes) -> list[int]:
    """The order of a token's byte-level image: its bytes' places in the alphabet."""
    order = {byte[0]: place for place, byte in enumerate(bpe.alphabet())}
    return [order[byte] for byte in token]
