"""Learned: what a method of extension wants to add to a tokenizer, as a value.

Owns its shape. How it is found out is each method's business, and how it gets into a tokenizer is
`apply`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from vocabshift.bpe.model import Merge


@dataclass(frozen=True)
class Learned:
    """New tokens and merges, in the order of the ids and ranks that they will have."""

    tokens: tuple[str, ...]  # not in the base; as the vocabulary spells them
    merges: tuple[Merge, ...]  # (left, right); a product may be a token of the base: a repair
    counts: tuple[int, ...] = ()  # of each merge's pair when it was merged, where it was counted
    stopped_because: str = "n_tokens"  # or "min_frequency", "no_pair_left", "no_token_left"
    n_repaired: int = 0  # merges that make a token of the base
    characters: tuple[str, ...] = ()  # of the tokens, those added for the text's characters alone
