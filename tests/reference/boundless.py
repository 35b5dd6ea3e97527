"""BoundlessBPE written plainly: count all pairs of both kinds, merge the best, count all again.

Source: arXiv 2504.00178. A piece of text is a list of units. A unit is a word,
cut into tokens, or several words that supermerges have joined, which is one token. Inside a word
neighbouring tokens make a pair; outside, two neighbouring units that are one token each and may
join. The best pair has the highest count, then the smallest (left_id, right_id).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reference import bpe

Merge = tuple[int, int, int, int, bool]  # left id, right id, product id, count, is a supermerge


@dataclass
class Unit:
    ids: list[int]
    may_join: bool  # once it is one token


def train(
    pieces: Iterable[tuple[Sequence[bytes], int]],
    vocab_size: int,
    may_join: Callable[[bytes], bool],
    *,
    min_frequency: int = 1,
    max_words: int | None = None,
    max_token_bytes: int | None = None,
) -> tuple[list[bytes], list[Merge], list[list[bytes]]]:
    """Tokens by id, merges in order, and the tokens of each piece at the end.

    `pieces` are lists of words, each with its (weighted) count.
    """
    tokens = bpe.alphabet()
    id_of = {token[0]: token_id for token_id, token in enumerate(tokens)}
    state, counts_of, words = [], [], Counter[bytes]()
    for piece, count in pieces:
        state.append([Unit([id_of[byte] for byte in word], may_join(word)) for word in piece])
        counts_of.append(count)
        for word in piece:
            words[word] += count
    limits = {"min_frequency": min_frequency, "max_token_bytes": max_token_bytes}
    made_by_words, _ = bpe.train(words, vocab_size, **limits)  # the owners of their strings

    def allowed(left: int, right: int, is_super: bool) -> bool:
        product = tokens[left] + tokens[right]
        if max_token_bytes is not None and len(product) > max_token_bytes:
            return False
        if not is_super:
            return True
        if product in tokens or product in made_by_words:
            return False
        return max_words is None or len([w for w in product.split(b" ") if w]) <= max_words

    merges: list[Merge] = []
    while len(tokens) < vocab_size:
        counts: Counter[tuple[int, int, bool]] = Counter()
        for piece, count in zip(state, counts_of, strict=True):
            for pair in pairs(piece):
                counts[pair] += count
        candidates = [
            (-count, pair)
            for pair, count in counts.items()
            if count >= max(min_frequency, 1) and allowed(*pair)
        ]
        if not candidates:
            break
        negative, (left, right, is_super) = min(candidates)
        tokens.append(tokens[left] + tokens[right])
        merges.append((left, right, len(tokens) - 1, -negative, is_super))
        state = [merged(piece, (left, right), len(tokens) - 1, is_super) for piece in state]
    return tokens, merges, [[tokens[i] for unit in piece for i in unit.ids] for piece in state]


def pairs(piece: Sequence[Unit]) -> Iterable[tuple[int, int, bool]]:
    for unit in piece:
        for left, right in pairwise(unit.ids):
            yield left, right, False
    for one, other in pairwise(piece):
        if is_whole(one) and is_whole(other):
            yield one.ids[0], other.ids[0], True


def is_whole(unit: Unit) -> bool:
    return unit.may_join and len(unit.ids) == 1


def merged(
    piece: Sequence[Unit], pair: tuple[int, int], product: int, is_super: bool
) -> list[Unit]:
    """The piece with every occurrence of the pair, from the left, replaced by the product."""
    if not is_super:
        return [Unit(bpe.merged(unit.ids, pair, product), unit.may_join) for unit in piece]
    out: list[Unit] = []
    at = 0
    while at < len(piece):
        both = piece[at : at + 2]
        if len(both) == 2 and all(map(is_whole, both)) and (both[0].ids[0], both[1].ids[0]) == pair:
            out.append(Unit([product], True))
            at += 2
        else:
            out.append(piece[at])
            at += 1
    return out
