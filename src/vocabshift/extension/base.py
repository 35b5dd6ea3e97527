"""A tokenizer in the form that continued training needs: dense ids, bytes, and the core's encoder.

Owns the way between a vocabulary whose ids may have holes and the places of training. Knows
nothing of text or of what is learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.tokenizer.model import MAX_ID, BpeModel, Merge, compile_model, images_bytes
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer


class TrainingBase:
    """What training goes on from. A place is the index of a token in the order of the ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.byte_level = is_byte_level(tokenizer)
        by_id = sorted(tokenizer.model.vocab.items(), key=lambda entry: entry[1])
        self.names = [token for token, _ in by_id]  # as the vocabulary spells them, by place
        self.places = {token: place for place, token in enumerate(self.names)}

    @cached_property
    def tokens(self) -> list[bytes]:
        """Bytes by place, as the core compares them: of a token, or of its text."""
        if self.byte_level:
            return images_bytes(self.names)
        return [token.encode() for token in self.names]

    @cached_property
    def encoder(self) -> _core.Encoder:
        """The model as it is, merge skipping included; ids are places."""
        model = self.tokenizer.model
        if model.size != len(self.names):
            model = model.unchecked(vocab=self.places)
        return compile_model(model, byte_level=self.byte_level)

    @cached_property
    def held(self) -> list[int]:
        """Places of the tokens that merges hold as a part."""
        parts = set(chain.from_iterable(self.tokenizer.model.merges))
        return [self.places[token] for token in parts]

    def forbidden(self) -> set[bytes]:
        """What no merge may make: an added token must not come out of ordinary text."""
        return {token.content.encode() for token in self.tokenizer.added_tokens}

    def spell(self, token: bytes) -> str:
        """A token of training as the vocabulary spells it."""
        from vocabshift.tokenizer import byte_level

        return byte_level.to_image(token) if self.byte_level else token.decode()

    def rows(self, tokens: Sequence[str], merges: Sequence[Merge]) -> NDArray[np.uint32]:
        """Merges as (n, 3) ids of training; `tokens` are new ones, behind all places."""
        ids = dict(self.places)
        ids.update((token, len(self.names) + i) for i, token in enumerate(tokens))
        rows = [(ids[left], ids[right], ids[left + right]) for left, right in merges]
        return np.array(rows, dtype=np.uint32).reshape(-1, 3)


# Learned: what a method of extension wants to add to a tokenizer, as a value.
#
# Owns its shape. How it is found out is each method's business, and how it gets into a tokenizer is
# `apply`'s.


@dataclass(frozen=True)
class Learned:
    """New tokens and merges, in the order of the ids and ranks that they will have."""

    tokens: tuple[str, ...]  # not in the base; as the vocabulary spells them
    merges: tuple[Merge, ...]  # (left, right); a product may be a token of the base: a repair
    counts: tuple[int, ...] = ()  # of each merge's pair when it was merged, where it was counted
    stopped_because: str = "n_tokens"  # or "min_frequency", "no_pair_left", "no_token_left"
    n_repaired: int = 0  # merges that make a token of the base
    characters: tuple[str, ...] = ()  # of the tokens, those added for the text's characters alone


# Put learned tokens and merges into a tokenizer; everything that is there stays where it is.
#
# New ids stand behind all others, special tokens included. Existing ids, merges and special tokens
# keep their places; merge skipping, normalizer, post-processor and chat template are kept.


def extended(
    base: Tokenizer, learned: Learned, *, merges_first: bool = False, free_ids: Iterable[int] = ()
) -> Tokenizer:
    """`base` with the tokens and merges of `learned`; new ids begin at `base.row_count`.

    `free_ids`, which no token of the base has, are taken before these. `merges_first` puts the new
    merges before all old ones, which changes old text too: it is there for the baseline `prepend`.
    ValueError for tokens that the base has already, or too many.
    """
    check_room(base, len(learned.tokens))
    known = base.model.vocab.keys() | {token.content for token in base.added_tokens}
    twice = [token for token in learned.tokens if token in known]
    if twice or len(set(learned.tokens)) != len(learned.tokens):
        raise ValueError(
            f"{len(twice)} of the new tokens are in {base.name} already, the first is {twice[0]!r}"
            if twice
            else "a new token is listed twice"
        )
    ids = chain(free_ids, count(base.row_count))
    vocab = dict(base.model.vocab)
    vocab.update(zip(learned.tokens, ids, strict=False))
    BpeModel(vocab, learned.merges)  # refuses merges that do not fit; the old ones are known to
    old = base.model.merges
    merges = (*learned.merges, *old) if merges_first else (*old, *learned.merges)
    return replace(base, model=base.model.unchecked(vocab=vocab, merges=merges))


def holes(base: Tokenizer) -> list[int]:
    """Ids below the highest that no token has, ascending."""
    taken = {*base.model.vocab.values(), *(token.id for token in base.added_tokens)}
    return [token_id for token_id in range(base.row_count) if token_id not in taken]


def check_room(base: Tokenizer, n_tokens: int) -> None:
    """ValueError where ids would grow beyond the highest that is believed."""
    room = MAX_ID + 1 - base.row_count
    if n_tokens > room:
        raise ValueError(f"{n_tokens:,} new tokens are too many; {base.name} has room for {room:,}")
