"""The BPE model of `tokenizers` written plainly: the lowest rank first, the leftmost of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

Pair = tuple[str, str]


def encode_piece(
    piece: str,
    vocab: Mapping[str, int],
    merges: Sequence[Pair],
    *,
    ignore_merges: bool = False,
    byte_fallback: bool = False,
    unk_token: str | None = None,
    fuse_unk: bool = False,
) -> list[int]:
    """Ids of one piece, spelt as the vocabulary spells it."""
    if ignore_merges and piece in vocab:
        return [vocab[piece]]
    rank = {pair: place for place, pair in enumerate(merges)}  # the later place of a repeated pair
    tokens = symbols(piece, vocab, byte_fallback, unk_token, fuse_unk)
    while found := [(rank[p], at) for at, p in enumerate(pairwise(tokens)) if p in rank]:
        _, at = min(found)
        tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]
    return [vocab[token] for token in tokens]


def symbols(
    piece: str,
    vocab: Mapping[str, int],
    byte_fallback: bool = False,
    unk_token: str | None = None,
    fuse_unk: bool = False,
) -> list[str]:
    """Tokens of the characters, before any merge; without `unk_token` unknown ones are dropped."""
    out: list[str] = []
    waiting = False  # for the next known character or the end: byte pieces may pass it
    for character in piece:
        spelt = [f"<0x{byte:02X}>" for byte in character.encode()]
        if character in vocab:
            out += [unk_token] * waiting + [character]
            waiting = False
        elif byte_fallback and all(token in vocab for token in spelt):
            out += spelt
        elif unk_token is not None:
            out += [unk_token] * (waiting and not fuse_unk)
            waiting = True
    return out + [unk_token] * waiting
