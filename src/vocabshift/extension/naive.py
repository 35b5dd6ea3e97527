"""Baselines of extension: what people do instead of training on. For comparison, not for use.

Source: the published toolkit of "Teaching Old Tokenizers New Words" (arXiv:2512.03989), whose rules
these are. All take the new tokens of an auxiliary tokenizer, in the order of its ids:

- regen (the paper's naive extension): for every new token, all its splits into two tokens become
  merges, behind the old ones. Merges of the base may cut a new token before its own merges come.
- append: the auxiliary tokenizer's own merges behind the old ones, as far as all three of their
  tokens are there. Most new tokens cannot be built, for the base would have to split text as the
  auxiliary tokenizer does.
- prepend: the merges of regen before all old ones. Old tokens are cut now, and old text changes.
- add-tokens: the texts of the new tokens as added tokens, cut out of the text before anything
  else, inside words too; where one begins or ends in a word, the rest of it falls apart.

Owns the four; what each costs is `naive_cost`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, get_args

from vocabshift.bpe import byte_level
from vocabshift.bpe.components import SPACE
from vocabshift.bpe.model import Merge
from vocabshift.bpe.token_bytes import is_byte_level
from vocabshift.bpe.tokenizer import AddedToken, Tokenizer
from vocabshift.extension.apply import check_room, extended
from vocabshift.extension.auxiliary import Auxiliary
from vocabshift.extension.learned import Learned

NaiveMethod = Literal["regen", "append", "prepend", "add-tokens"]


def naive_extension(
    base: Tokenizer, auxiliary: Auxiliary, method: NaiveMethod, *, n_tokens: int
) -> Tokenizer:
    """`base` with `n_tokens` new tokens by one of the baselines, or with all that there are.

    New ids stand behind all others. ValueError for a method that does not exist, or where the
    auxiliary tokenizer has no token that the base lacks.
    """
    if method not in get_args(NaiveMethod):
        raise ValueError(f"method is {method!r}; give one of {get_args(NaiveMethod)}")
    if method == "add-tokens":
        return add_tokens(base, auxiliary, n_tokens=n_tokens)
    learned = (append if method == "append" else regen)(base, auxiliary, n_tokens=n_tokens)
    return extended(base, learned, merges_first=method == "prepend")


def regen(base: Tokenizer, auxiliary: Auxiliary, *, n_tokens: int) -> Learned:
    """New tokens with every split of theirs as a merge, those with a longer left part first."""
    tokens = _first(auxiliary.new_tokens(base), base, n_tokens)
    known = base.model.vocab.keys() | set(tokens)
    old = set(base.model.merges)
    merges = [split for token in tokens for split in _splits(token, known) if split not in old]
    return Learned(tokens, tuple(merges), stopped_because=_stopped(tokens, n_tokens))


def append(base: Tokenizer, auxiliary: Auxiliary, *, n_tokens: int) -> Learned:
    """New tokens with the auxiliary tokenizer's merges whose three tokens are there."""
    if not auxiliary.merges:
        raise ValueError(
            f"the auxiliary tokenizer names no merges that could be appended to those of "
            f"{base.name} (SentencePiece's trainer tells none); compare with regen or prepend"
        )
    tokens = _first(auxiliary.new_tokens(base), base, n_tokens)
    known = base.model.vocab.keys() | set(tokens)
    old = set(base.model.merges)
    merges = tuple(
        (left, right)
        for left, right in auxiliary.merges
        if left in known and right in known and left + right in known and (left, right) not in old
    )
    n_repaired = sum(left + right in base.model.vocab for left, right in merges)
    stopped = _stopped(tokens, n_tokens)
    return Learned(tokens, merges, stopped_because=stopped, n_repaired=n_repaired)


def add_tokens(base: Tokenizer, auxiliary: Auxiliary, *, n_tokens: int) -> Tokenizer:
    """New tokens as added tokens with the flags that transformers' `add_tokens` gives to strings.

    Tokens that are not whole characters have no text and are passed over, and so are those whose
    text is a token of the base already (the text "õ" spells the byte 0xF5 there).
    """
    taken = base.model.vocab.keys() | {token.content for token in base.added_tokens}
    texts = [text for text in _texts(base, auxiliary.new_tokens(base)) if text not in taken]
    chosen = _first(texts, base, n_tokens)
    first = base.row_count
    added = (
        AddedToken(text, first + i, special=False, normalized=True) for i, text in enumerate(chosen)
    )
    return replace(base, added_tokens=(*base.added_tokens, *added))


def _first(tokens: list[str], base: Tokenizer, n_tokens: int) -> tuple[str, ...]:
    if n_tokens < 1:
        raise ValueError(f"n_tokens is {n_tokens}; give at least 1")
    if not tokens:
        raise ValueError(
            f"the auxiliary tokenizer has no token that {base.name} lacks; give more text, or text "
            "in a language that it does not know well"
        )
    check_room(base, min(n_tokens, len(tokens)))
    return tuple(tokens[:n_tokens])


def _stopped(tokens: tuple[str, ...], n_tokens: int) -> str:
    """Why no more: the tokens asked for, or all that the auxiliary tokenizer has."""
    return "n_tokens" if len(tokens) == n_tokens else "no_token_left"


def _splits(token: str, known: Iterable[str] | Mapping[str, int]) -> list[Merge]:
    """All splits of a token into two known ones, the longest left part first."""
    return [
        (token[:at], token[at:])
        for at in range(len(token) - 1, 0, -1)
        if token[:at] in known and token[at:] in known
    ]


def _texts(base: Tokenizer, tokens: Iterable[str]) -> list[str]:
    """The texts of tokens, as far as they are whole characters."""
    if not is_byte_level(base):
        return [token.replace(SPACE, " ") for token in tokens]
    texts = []
    for image in tokens:
        try:
            texts.append(byte_level.to_bytes(image).decode())
        except UnicodeDecodeError:
            continue
    return texts
