"""Put learned tokens and merges into a tokenizer; everything that is there stays where it is.

New ids stand behind all others, special tokens included. Existing ids, merges and special tokens
keep their places; merge skipping, normalizer, post-processor and chat template are kept.
"""

from __future__ import annotations

from dataclasses import replace

from vocabshift.bpe.model import MAX_ID
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.extension.learned import Learned


def extended(base: Tokenizer, learned: Learned, *, merges_first: bool = False) -> Tokenizer:
    """`base` with the tokens and merges of `learned`; new ids begin at `base.row_count`.

    `merges_first` puts the new merges before all old ones, which changes old text too: it is there
    for the baseline `prepend`. ValueError for tokens that the base has already, or too many.
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
    first = base.row_count
    vocab = dict(base.model.vocab)
    vocab.update((token, first + i) for i, token in enumerate(learned.tokens))
    old = tuple(base.model.merges)
    merges = (*learned.merges, *old) if merges_first else (*old, *learned.merges)
    return replace(base, model=replace(base.model, vocab=vocab, merges=merges))


def check_room(base: Tokenizer, n_tokens: int) -> None:
    """ValueError where ids would grow beyond the highest that is believed."""
    room = MAX_ID + 1 - base.row_count
    if n_tokens > room:
        raise ValueError(f"{n_tokens:,} new tokens are too many; {base.name} has room for {room:,}")
