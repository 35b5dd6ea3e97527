"""Tokens that no text can have trained: which of a tokenizer's ids are known to be unused.

Owns the reference tokens that we add before a training (`with_unused`), which are found again by
their names wherever the tokenizer goes, and the ids that any tokenizer leaves unused: bytes that
UTF-8 never has, and what vendors call unused or reserved. Knows nothing of models.
"""

from __future__ import annotations

import re
from dataclasses import replace

from vocabshift.bpe.token_bytes import is_byte_level, token_bytes
from vocabshift.bpe.tokenizer import AddedToken, Tokenizer
from vocabshift.text import chat_tokens

MOST = 10_000
"""Reference tokens that may be asked for; ten are enough for a mean, a hundred for a threshold."""

NEVER_IN_UTF8 = frozenset((0xC0, 0xC1, *range(0xF5, 0x100)))
"""Bytes that stand in no UTF-8 text."""

# Subtle: not a name that chat_tokens takes for a vendor's reserved token: a transfer would copy
# that token's row.
_OURS = "<|vocabshift_unused_{}|>"
_OURS_AGAIN = re.compile(r"<\|vocabshift_unused_\d+\|>")
_VENDORS = re.compile(r"<\|?\w*(?:unused|reserved)\w*\|?>|\[unused\d+\]", re.IGNORECASE)


def unused_names(n: int, taken: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Names of `n` reference tokens that are not `taken`; ValueError for an impossible number."""
    if not 0 <= n <= MOST:
        raise ValueError(f"{n} unused tokens are asked for; give 0 to {MOST:,}")
    names: list[str] = []
    number = 0
    while len(names) < n:
        if (name := _OURS.format(number)) not in taken:
            names.append(name)
        number += 1
    return tuple(names)


def with_unused(tokenizer: Tokenizer, n: int) -> Tokenizer:
    """The tokenizer with `n` special tokens more, ids behind all others, that no text has."""
    taken = frozenset(token.content for token in tokenizer.added_tokens)
    first = tokenizer.row_count
    added = tuple(
        AddedToken(name, first + place) for place, name in enumerate(unused_names(n, taken))
    )
    return replace(tokenizer, added_tokens=tokenizer.added_tokens + added)


def our_unused(tokenizer: Tokenizer) -> list[int]:
    """Ids of the reference tokens that `with_unused` (`--reserve-dummies`) added."""
    return sorted(t.id for t in tokenizer.added_tokens if _OURS_AGAIN.fullmatch(t.content))


def never_in_text(tokenizer: Tokenizer) -> list[int]:
    """Ids of tokens that are one byte that UTF-8 never has."""
    if is_byte_level(tokenizer):
        spelled = token_bytes(tokenizer)
        return sorted(
            i
            for i, data in spelled.items()
            if len(data) == 1 and data[0] >= 0xC0 and data[0] in NEVER_IN_UTF8
        )
    vocab = tokenizer.model.vocab
    names = (f"<0x{byte:02X}>" for byte in sorted(NEVER_IN_UTF8))
    return sorted(vocab[name] for name in names if name in vocab)


def called_unused(tokenizer: Tokenizer) -> list[int]:
    """Ids of tokens whose name says that they are unused or reserved, ours left out."""
    named = dict(tokenizer.model.vocab)
    named |= {token.content: token.id for token in tokenizer.added_tokens}
    return sorted(
        i
        for token, i in named.items()
        if not _OURS_AGAIN.fullmatch(token)
        and (_VENDORS.fullmatch(token) or chat_tokens.use_of(token) == chat_tokens.RESERVED)
    )
