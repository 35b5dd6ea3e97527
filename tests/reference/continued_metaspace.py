"""Continued BPE without groups: all pairs of all documents are counted, again and again.

A pair may merge where the rule allows its product and neither token stands alone; nothing is cut,
so this also says whether cutting loses anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from reference.bpe import merged

Merge = tuple[str, str]


def segments(backend: Any, documents: Sequence[str]) -> list[list[int]]:
    """Ids of each pre-token of each document, by `tokenizers`."""
    found: list[list[int]] = []
    for document in documents:
        encoding = backend.encode(document, add_special_tokens=False)
        word = object()
        for token_id, word_id in zip(encoding.ids, encoding.word_ids, strict=True):
            if word_id != word:
                found.append([])
            word = word_id
            found[-1].append(token_id)
    return found


def learn(
    tokens: dict[int, str],
    sequences: list[list[int]],
    weights: list[int],
    *,
    n_tokens: int,
    min_frequency: int,
    alone: set[str],
    held: set[str],
    allows: Callable[[str], bool],
    lexicographic: bool,
) -> tuple[list[Merge], list[int]]:
    """Merges and their counts; `tokens` grows, `sequences` are rewritten and count `weights` times.

    A product that is a token already is taken again if no merge holds it; in lexicographic mode
    always.
    """
    held = set(held)
    first = max(tokens) + 1
    merges: list[Merge] = []
    counts: list[int] = []
    while max(tokens) + 1 < first + n_tokens:
        id_of = {token: token_id for token_id, token in sorted(tokens.items(), reverse=True)}
        found: Counter[tuple[int, int]] = Counter()
        for ids, weight in zip(sequences, weights, strict=True):
            for pair in pairwise(ids):
                found[pair] += weight
        best = None
        for (left, right), count in found.items():
            product = tokens[left] + tokens[right]
            if (
                count < min_frequency
                or {tokens[left], tokens[right], product} & alone
                or not allows(product)
                or (not lexicographic and product in held)
            ):
                continue
            order = (tokens[left], tokens[right]) if lexicographic else (left, right)
            if best is None or (-count, order) < best[:2]:
                best = (-count, order, left, right)
        if best is None:
            break
        negative, _, left, right = best
        product = tokens[left] + tokens[right]
        at = id_of.get(product, max(tokens) + 1)
        tokens[at] = product
        held |= {tokens[left], tokens[right]}
        if (tokens[left], tokens[right]) not in merges:
            merges.append((tokens[left], tokens[right]))
            counts.append(-negative)
        sequences[:] = [merged(ids, (left, right), at) for ids in sequences]
    return merges, counts
