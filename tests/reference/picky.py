"""PickyBPE written plainly: count everything anew after every event.

Source: Chizhov et al., "BPE Gets Picky" (EMNLP 2024), with the rules of the authors' code
(docs/algorithms/picky.md). Ties, symbols and what fills the vocabulary are ours: the smaller
(left_id, right_id), bytes, tokens that are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from reference import bpe


@dataclass(frozen=True)
class Event:
    """A merge, or the removal of a token (then `right` and `product` are None)."""

    left: int
    right: int | None
    product: int | None
    count: int  # merges that were made, or occurrences that were split
    parts: tuple[int, ...] = ()  # of a removal


@dataclass
class Picky:
    """What training knows; `train` fills it."""

    tokens: list[bytes] = field(default_factory=bpe.alphabet)
    made_from: list[tuple[int, int] | None] = field(default_factory=lambda: [None] * 256)
    present: list[bool] = field(default_factory=lambda: [True] * 256)
    events: list[Event] = field(default_factory=list)
    words: dict[bytes, list[int]] = field(default_factory=dict)  # as the events leave them

    def walk(self, token: int) -> list[int]:
        """The tokens that are there, of which a token is made."""
        if self.present[token]:
            return [token]
        pair = self.made_from[token]
        assert pair is not None
        return self.walk(pair[0]) + self.walk(pair[1])


def train(
    counts: Mapping[bytes, int],
    vocab_size: int,
    threshold: float,
    *,
    min_frequency: int = 1,
    max_token_bytes: int | None = None,
) -> Picky:
    """Learn from words with their counts."""
    state = Picky()
    id_of = {token[0]: token_id for token_id, token in enumerate(state.tokens)}
    state.words = {word: [id_of[byte] for byte in word] for word in counts}

    def frequency(token: int) -> int:
        return sum(ids.count(token) * counts[word] for word, ids in state.words.items())

    while sum(state.present) < vocab_size:
        pairs: Counter[tuple[int, int]] = Counter()
        for word, ids in state.words.items():
            for pair in pairwise(ids):
                pairs[pair] += counts[word]
        candidates = [
            (-count, pair)
            for pair, count in pairs.items()
            if count >= max(min_frequency, 1)
            and (
                max_token_bytes is None
                or len(state.tokens[pair[0]] + state.tokens[pair[1]]) <= max_token_bytes
            )
        ]
        if not candidates:
            break
        _, (left, right) = min(candidates)
        string = state.tokens[left] + state.tokens[right]
        if string in state.tokens:
            product = state.tokens.index(string)
            state.present[product] = True
        else:
            product = len(state.tokens)
            state.tokens.append(string)
            state.made_from.append((left, right))
            state.present.append(True)
        merges = 0
        for word, ids in state.words.items():
            after = bpe.merged(ids, (left, right), product)
            merges += (len(ids) - len(after)) * counts[word]
            state.words[word] = after
        state.events.append(Event(left, right, product, merges))
        for token in dict.fromkeys((left, right)):
            rest = frequency(token)
            if state.made_from[token] is None or not merges / (rest + merges) > threshold:
                continue
            state.present[token] = False
            parts = tuple(state.walk(token))
            state.events.append(Event(token, None, None, rest, parts))
            for word, ids in state.words.items():
                state.words[word] = split(ids, token, parts)
    return state


def split(ids: list[int], token: int, parts: tuple[int, ...]) -> list[int]:
    """`ids` with every occurrence of `token` replaced by `parts`."""
    return [part for one in ids for part in (parts if one == token else (one,))]


def replay(state: Picky, word: bytes) -> list[bytes]:
    """A word, encoded by all events in order; one that is a token as a whole is that token."""
    if word in state.tokens and state.present[state.tokens.index(word)]:
        return [word]
    ids = [state.tokens.index(bytes([byte])) for byte in word]
    for event in state.events:
        if event.right is None or event.product is None:
            ids = split(ids, event.left, event.parts)
        else:
            ids = bpe.merged(ids, (event.left, event.right), event.product)
    return [state.tokens[i] for i in ids]
