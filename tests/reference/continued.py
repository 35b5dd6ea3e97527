"""Continued BPE written plainly, for words that a base tokenizer has segmented already.

The order of the paper's toolkit (ties by the strings of the pair) or that of ids; what happens to
a pair whose product is a token already is said by `may_make`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

Merge = tuple[str, str]


def learn(
    words: Mapping[tuple[str, ...], int],
    vocab: Sequence[str],
    n_tokens: int,
    *,
    lexicographic: bool,
    held: set[str] | None,
    min_frequency: int = 1,
    allowed: Callable[[str], bool] = lambda product: True,
) -> tuple[list[str], list[tuple[Merge, int]], dict[tuple[str, ...], int]]:
    """New tokens, merges with their counts, and the words as they are segmented in the end.

    `words`: segmented words with counts; `vocab`: tokens by id. `held`: tokens that merges hold as
    a part, which are not made again; None: tokens are made again whoever holds them.
    """
    ids = {token: i for i, token in enumerate(vocab)}
    held = None if held is None else set(held)
    new: list[str] = []
    merges: list[tuple[Merge, int]] = []
    refused: set[Merge] = set()
    current = [(list(word), count) for word, count in words.items()]
    while len(new) < n_tokens:
        counts: Counter[Merge] = Counter()
        for word, count in current:
            for pair in pairwise(word):
                counts[pair] += count
        order = [
            (-count, pair if lexicographic else (ids[pair[0]], ids[pair[1]]), pair)
            for pair, count in counts.items()
            if count >= min_frequency and pair not in refused and allowed(pair[0] + pair[1])
        ]
        if not order:
            break
        count, _, pair = min(order)
        product = pair[0] + pair[1]
        if held is not None and product in ids and product in held:
            refused.add(pair)
            continue
        if product not in ids:
            ids[product] = len(ids)
            new.append(product)
        merges.append((pair, -count))
        if held is not None:
            held |= set(pair)
        current = [(_merged(word, pair), count) for word, count in current]
    end: Counter[tuple[str, ...]] = Counter()
    for word, count in current:
        end[tuple(word)] += count
    return new, merges, dict(end)


def _merged(word: list[str], pair: Merge) -> list[str]:
    result: list[str] = []
    i = 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            result.append(word[i] + word[i + 1])
            i += 2
        else:
            result.append(word[i])
            i += 1
    return result
