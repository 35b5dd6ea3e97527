"""Tokens that a tokenizer's own pipeline never lets through.

A token may pass the self-tokenization test (STT) and yet never occur, because the normalizer
rewrites its text or the pre-tokenizer splits it. A token counts as reachable if it appears when its
text is encoded alone or in one of the contexts below.

There are two measures. `check` requires that a usual context yields the token. A token is called
unreachable only if no context at all, usual or rare, yields it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, Ids, Offsets
from vocabshift.tokenizer.token_bytes import texts_of_tokens

_BEFORE = ("", "a", "1", " ", "!", "\n", "क")
"""What usually stands before a token: nothing, a letter, a digit, a space, punctuation, a newline,
a letter of an Indian script."""

# After it also other whitespace that a newline ends: patterns cut a run of whitespace at its last
# newline, and the beginnings of such runs would seem dead.
_AFTER = (*_BEFORE, "\t\n")

_USUAL_CONTEXTS = tuple(product(_BEFORE, _AFTER))
# Rarer: a run of punctuation before it, which takes newlines and slashes along in some patterns.
_RARE_CONTEXTS = tuple(("!!", after) for after in _AFTER)


def unreachable_by_pipeline(tokenizer: AnyTokenizer) -> tuple[str, ...]:
    """Tokens of whole UTF-8, not special, that no context yields; by id."""
    usual, rare = pipeline_reachability(tokenizer)
    reached = set(rare)
    return tuple(token for token in usual if token not in reached)


def pipeline_reachability(tokenizer: AnyTokenizer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tokens of whole UTF-8, not special, that no usual context yields; and those of them that a
    rarer one yields all the same. By id."""
    added = (token.content for token in tokenizer.added_tokens)
    left_out = {*added, *tokenizer.byte_pieces(), tokenizer.unk_token}
    texts = texts_of_tokens(tokenizer)
    waiting = [
        (token_id, token, text)
        for token, token_id in sorted(tokenizer.vocab.items(), key=lambda item: item[1])
        if token not in left_out and (text := texts.get(token_id))
    ]
    usual = _not_yielded(waiting, _USUAL_CONTEXTS, tokenizer)
    never = {token for _, token, _ in _not_yielded(usual, _RARE_CONTEXTS, tokenizer)}
    found = tuple(token for _, token, _ in usual)
    return found, tuple(token for token in found if token not in never)


def _not_yielded(
    waiting: list[tuple[int, str, str]],
    contexts: Iterable[tuple[str, str]],
    tokenizer: AnyTokenizer,
) -> list[tuple[int, str, str]]:
    """Those of (id, token, text) that none of the contexts (before, after) yields."""
    for before, after in contexts:
        if not waiting:
            break
        ids, offsets = tokenizer.encode_batch(
            [before + text + after for _, _, text in waiting], parse_special=False
        )
        found = _holds(ids, offsets, [token_id for token_id, _, _ in waiting])
        waiting = [row for row, is_found in zip(waiting, found, strict=True) if not is_found]
    return waiting


def _holds(ids: Ids, offsets: Offsets, wanted: list[int]) -> Iterable[bool]:
    """Whether text i yields the id wanted[i]."""
    text_of = np.repeat(np.arange(len(wanted)), np.diff(offsets))
    hits = ids == np.asarray(wanted, dtype=np.int32)[text_of]
    found = np.zeros(len(wanted), dtype=bool)
    found[text_of[hits]] = True
    return found.tolist()
