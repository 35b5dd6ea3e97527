"""Put learned tokens and merges into a tokenizer; everything that is there stays where it is.

New ids stand behind all others, special tokens included. Existing ids, merges and special tokens
keep their places; merge skipping, normalizer, post-processor and chat template are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, count

from vocabshift.bpe.model import MAX_ID, BpeModel
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.extension.learned import Learned


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
    return replace(base, model=replace(base.model, vocab=vocab, merges=merges, _checked=True))


def holes(base: Tokenizer) -> list[int]:
    """Ids below the highest that no token has, ascending."""
    taken = {*base.model.vocab.values(), *(token.id for token in base.added_tokens)}
    return [token_id for token_id in range(base.row_count) if token_id not in taken]


def check_room(base: Tokenizer, n_tokens: int) -> None:
    """ValueError where ids would grow beyond the highest that is believed."""
    room = MAX_ID + 1 - base.row_count
    if n_tokens > room:
        raise ValueError(f"{n_tokens:,} new tokens are too many; {base.name} has room for {room:,}")
