"""Tokens that a tokenizer's own pipeline never lets through.

The merges may rebuild a token (STT) and yet no text yields it: the normalizer rewrites it, or the
pre-tokenizer cuts inside it. A token counts as reachable if it appears when its text is encoded
alone or in one of the contexts below.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.pipeline import Ids, Offsets
from vocabshift.bpe.reachability import byte_pieces
from vocabshift.bpe.token_bytes import texts_of_tokens
from vocabshift.bpe.tokenizer import Tokenizer

# What may stand beside a token: nothing, a letter, a digit, a space, punctuation, a newline, a
# letter of an Indian script; behind it also other whitespace that a newline ends, since patterns
# cut a run of whitespace at its last newline; before it also a run of punctuation, which takes
# newlines and slashes along in some patterns.
_BEHIND = ("", "a", "1", " ", "!", "\n", "क")
_CONTEXTS = tuple(product((*_BEHIND, "!!"), (*_BEHIND, "\t\n")))


def unreachable_by_pipeline(
    tokenizer: Tokenizer, encoder: Encoder | None = None
) -> tuple[str, ...]:
    """Tokens of whole UTF-8, not special, that no context yields; by id."""
    left_out = {token.content for token in tokenizer.added_tokens} | set(byte_pieces(tokenizer))
    if tokenizer.model.unk_token is not None:
        left_out.add(tokenizer.model.unk_token)
    texts = texts_of_tokens(tokenizer)
    waiting = [
        (token_id, token, text)
        for token, token_id in sorted(tokenizer.model.vocab.items(), key=lambda item: item[1])
        if token not in left_out and (text := texts.get(token_id))
    ]
    encoder = encoder or Encoder(tokenizer)
    for before, after in _CONTEXTS:
        if not waiting:
            break
        ids, offsets = encoder.encode_batch(
            [before + text + after for _, _, text in waiting], parse_special=False
        )
        found = _holds(ids, offsets, [token_id for token_id, _, _ in waiting])
        waiting = [row for row, is_found in zip(waiting, found, strict=True) if not is_found]
    return tuple(token for _, token, _ in waiting)


def _holds(ids: Ids, offsets: Offsets, wanted: list[int]) -> Iterable[bool]:
    """Whether text i yields the id wanted[i]."""
    text_of = np.repeat(np.arange(len(wanted)), np.diff(offsets))
    hits = ids == np.asarray(wanted, dtype=np.int32)[text_of]
    found = np.zeros(len(wanted), dtype=bool)
    found[text_of[hits]] = True
    return found.tolist()
