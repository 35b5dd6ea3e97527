"""Take tokens out of a BPE tokenizer: vocabulary, merges, and everything that holds an id.

Owns the new numbering and what follows from it. Which tokens may go, and in which order, is
`orders`' and `protection`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vocabshift.bpe import post_processor
from vocabshift.bpe.pretrained_folder import config_with_ids
from vocabshift.bpe.splits import Ids
from vocabshift.bpe.tokenizer import Tokenizer


def new_ids(present: set[int], removed: Ids, *, keep_ids: bool = False) -> dict[int, int]:
    """New id of every id that stays: dense in the old order, or as before with holes."""
    staying = sorted(present - set(removed.tolist()))
    return {old: old if keep_ids else place for place, old in enumerate(staying)}


def without_tokens(tokenizer: Tokenizer, old_to_new: Mapping[int, int]) -> Tokenizer:
    """The tokenizer of the tokens in `old_to_new`; merges that touch or make another one go."""
    model = tokenizer.model
    vocab = {
        token: old_to_new[token_id]
        for token, token_id in sorted(model.vocab.items(), key=lambda entry: entry[1])
        if token_id in old_to_new
    }
    gone = model.vocab.keys() - vocab.keys()
    merges = tuple(
        merge
        for merge in model.merges
        if merge[0] not in gone and merge[1] not in gone and merge[0] + merge[1] not in gone
    )
    return replace(
        tokenizer,
        model=replace(model, vocab=vocab, merges=merges),
        added_tokens=tuple(
            replace(token, id=old_to_new[token.id]) for token in tokenizer.added_tokens
        ),
        post_processor=post_processor.with_ids(tokenizer.post_processor, old_to_new),
        config=config_with_ids(tokenizer.config, old_to_new),
    )


def present_ids(tokenizer: Tokenizer) -> set[int]:
    """Every id that names a token."""
    return {*tokenizer.model.vocab.values(), *(token.id for token in tokenizer.added_tokens)}


def as_flags(ids: set[int], rows: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(rows,) whether an id is one of `ids`; ids beyond the rows are left out."""
    flags = np.zeros(rows, dtype=bool)
    flags[[token_id for token_id in ids if 0 <= token_id < rows]] = True
    return flags
