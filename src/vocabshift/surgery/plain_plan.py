"""Unigram and WordPiece tokenizers that were pruned: rows follow the token map alone.

Owns the TokenMap and the special ids of such a pair. There are no new tokens (of what old pieces
one would be made is not known), so no initializer has anything to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vocabshift.bpe.id_map import IdMap
from vocabshift.bpe.plain_tokenizer import PlainTokenizer
from vocabshift.errors import VocabMismatchError
from vocabshift.surgery.special_ids import SpecialTokens
from vocabshift.surgery.token_map import TokenMap


def check_kinds(old: Any, new: Any, id_map: IdMap | None) -> bool:
    """Whether both are Unigram or WordPiece, and the map is theirs.

    VocabMismatchError for one of these with another kind, or without a map.
    """
    plain = [tokenizer for tokenizer in (old, new) if isinstance(tokenizer, PlainTokenizer)]
    if not plain:
        return False
    if len(plain) == 1:
        raise VocabMismatchError(
            f"{plain[0].name} is a {plain[0].kind} tokenizer and the other one is not: whose "
            "tokens are made of which is not known; Unigram and WordPiece tokenizers can be "
            "pruned and transferred, not exchanged"
        )
    if id_map is None:
        raise VocabMismatchError(
            f"a {old.kind} tokenizer can be transferred to one that `vocabshift prune` made of it; "
            f"beside {new.name} there is no token_map.json"
        )
    id_map.require(old.fingerprint, new.fingerprint)
    return True


def match_by_map(
    old: PlainTokenizer, new: PlainTokenizer, id_map: IdMap
) -> tuple[SpecialTokens, TokenMap]:
    """Special ids and rows as the map says; VocabMismatchError for a token it lacks."""
    new_to_old = id_map.new_to_old()
    new_ids, old_ids = _ids(new), _ids(old)
    unknown = sorted(new_ids - new_to_old.keys())
    if unknown or not set(new_to_old.values()) <= old_ids:
        raise VocabMismatchError(
            f"the token map does not say which old token the new id {unknown[:1]} is; new tokens "
            "of Unigram and WordPiece tokenizers cannot be made of old rows"
        )
    kept = sorted(new_ids)
    old_to_new = {new_to_old[token_id]: token_id for token_id in kept}
    none = np.zeros(0, dtype=np.int64)
    mapping = TokenMap(
        copied_from=np.array([new_to_old[token_id] for token_id in kept], dtype=np.int64),
        copied_to=np.array(kept, dtype=np.int64),
        made=none,
        pieces=none,
        offsets=np.zeros(1, dtype=np.int64),
        old_ids=np.array(sorted(old_ids), dtype=np.int64),
    )
    tokenizer: Any = new  # whatever can be written and has rows
    return SpecialTokens(tokenizer, {}, old_to_new, {}), mapping


def _ids(tokenizer: PlainTokenizer) -> set[int]:
    return {*tokenizer.vocab.values(), *(token.id for token in tokenizer.added_tokens)}
