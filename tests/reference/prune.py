"""Pruning written plainly (docs/algorithms/pruning.md): every token encoded, every merge written.

Tokens are strings as the vocabulary spells them; a piece is encoded by the lowest rank first, the
leftmost of these, and every merge is written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from reference.encode import symbols

Pair = tuple[str, str]


def performed(piece: str, vocab: Mapping[str, int], merges: Sequence[Pair]) -> list[Pair | str]:
    """Every merge that was performed, in order, and then the tokens that are left."""
    rank = {pair: place for place, pair in enumerate(merges)}
    tokens = symbols(piece, vocab)
    done: list[Pair | str] = []
    while found := [(rank[p], at) for at, p in enumerate(pairwise(tokens)) if p in rank]:
        _, at = min(found)
        done.append((tokens[at], tokens[at + 1]))
        tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]
    return [*done, *tokens]


def splits(vocab: Mapping[str, int], merges: Sequence[Pair]) -> dict[str, Pair | None]:
    """The last merge of each token that its own string gives; None: it is a symbol already."""
    found: dict[str, Pair | None] = {}
    for token in vocab:
        *done, last = performed(token, vocab, merges)
        if last == token:
            found[token] = done[-1] if done else None  # type: ignore[assignment]
    return found


def counts(
    pieces: Iterable[str], vocab: Mapping[str, int], merges: Sequence[Pair]
) -> tuple[Counter[str], Counter[str]]:
    """Final tokens; and final tokens plus the part that each token takes in a merge."""
    final: Counter[str] = Counter()
    merged: Counter[str] = Counter()
    for piece in pieces:
        for step in performed(piece, vocab, merges):
            if isinstance(step, str):
                final[step] += 1
                merged[step] += 1
            else:
                merged.update(step)
    return final, merged


def leaf_order(
    vocab: Mapping[str, int],
    merges: Sequence[Pair],
    removable: set[str],
    freq: Mapping[str, int] | None,
) -> list[str]:
    """leaf_frequency (`freq`: of final tokens, handed on to both halves) or leaf_last_n (None)."""
    split = splits(vocab, merges)
    frequency = dict.fromkeys(vocab, 0) if freq is None else {t: freq.get(t, 0) for t in vocab}
    left = set(vocab)
    order: list[str] = []
    while leaves := [t for t in left & removable if not _is_used(t, left, split)]:
        token = min(leaves, key=lambda t: (frequency[t], -vocab[t]))
        order.append(token)
        left.remove(token)
        if freq is not None:
            for half in split.get(token) or ():
                frequency[half] += frequency[token]
    return order


def frequency_order(
    vocab: Mapping[str, int],
    merges: Sequence[Pair],
    removable: set[str],
    freq: Mapping[str, int],
) -> list[str]:
    """The rarest final token of those that nothing left is made of."""
    split = splits(vocab, merges)
    left = set(vocab)
    order: list[str] = []
    while leaves := [t for t in left & removable if not _is_used(t, left, split)]:
        token = min(leaves, key=lambda t: (freq.get(t, 0), -vocab[t]))
        order.append(token)
        left.remove(token)
    return order


def merge_order(
    vocab: Mapping[str, int], removable: set[str], merged: Mapping[str, int]
) -> list[str]:
    """merge_based: the rarest in any merge, then the longest, then the highest id."""
    return sorted(removable, key=lambda t: (merged.get(t, 0), -len(t), -vocab[t]))


def id_order(vocab: Mapping[str, int], merges: Sequence[Pair], removable: set[str]) -> list[str]:
    """The highest id first, everything made of it before it."""
    split = splits(vocab, merges)
    order: list[str] = []

    def take(token: str) -> None:
        if token in order:
            return
        for other in _by_id(vocab, removable):
            if token in (split.get(other) or ()):
                take(other)
        order.append(token)

    for token in _by_id(vocab, removable):
        take(token)
    return order


def removable_tokens(
    vocab: Mapping[str, int], merges: Sequence[Pair], protected: Callable[[str], bool]
) -> set[str]:
    """All tokens but symbols, what is protected, and what that is made of."""
    split = splits(vocab, merges)
    kept = {t for t in vocab if protected(t) or (t in split and split[t] is None)}
    while more := {half for t in kept for half in split.get(t) or ()} - kept:
        kept |= more
    return set(vocab) - kept


def _is_used(token: str, left: set[str], split: Mapping[str, Pair | None]) -> bool:
    return any(token in (split.get(other) or ()) for other in left)


def _by_id(vocab: Mapping[str, int], tokens: set[str]) -> list[str]:
    return sorted(tokens, key=lambda token: -vocab[token])
