"""tiktoken rank files: base64 token, a space, its rank, one per line.

Owns the file format and what becomes of ranks as a Tokenizer. The file holds neither pattern nor
special tokens: `known_ranks` supplies them, or the caller names a pattern.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from vocabshift.bpe import byte_level, components, known_ranks, rank_merges
from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.tokenizer import AddedToken, Tokenizer
from vocabshift.errors import InvalidTokenizerError

_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]{1,9}\r?$")
_BYTE_COUNT = 256


def is_ranks(head: bytes) -> bool:
    """Whether a file that begins with `head` is a rank file (its first line says so)."""
    return _LINE.match(head.split(b"\n", 1)[0]) is not None


def read_ranks(data: bytes) -> dict[bytes, int]:
    """Token bytes -> rank, or InvalidTokenizerError with the line that is wrong."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        if not _LINE.match(line):
            raise InvalidTokenizerError(
                f"line {number} of the rank file is not a base64 token and its rank: {line[:60]!r}"
            )
        text, rank = line.split()
        try:
            token = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise InvalidTokenizerError(f"line {number} of the rank file: {error}") from None
        if token in ranks:
            raise InvalidTokenizerError(f"line {number} of the rank file repeats {token!r}")
        ranks[token] = int(rank)
    return ranks


def from_ranks(data: bytes, *, pattern: str | None = None, name: str = "tokenizer") -> Tokenizer:
    """The Tokenizer of a rank file; `pattern` (name or regex) is needed for unknown ranks."""
    ranks = read_ranks(data)
    known = known_ranks.recognise(ranks)
    if known is None and pattern is None:
        raise InvalidTokenizerError(
            "a rank file does not hold its pre-tokenizer pattern, and these ranks are none of the "
            "known vocabularies; name one with --pattern (pattern=), for example cl100k or o200k"
        )
    if known is None:
        return byte_level_tokenizer(ranks, pattern=pattern or "", name=name)
    added = tuple(
        AddedToken(content, token_id, special=content not in known.plain)
        for content, token_id in known.special_tokens.items()
    )
    return byte_level_tokenizer(
        ranks,
        pattern=pattern or known.pattern,
        added_tokens=added,
        config=known.roles,
        normalizer={"type": known.normalizer} if known.normalizer else None,
        merge_rule=known.merge_rule,
        name=name,
    )


def byte_level_tokenizer(
    ranks: Mapping[bytes, int],
    *,
    pattern: str,
    added_tokens: tuple[AddedToken, ...] = (),
    vocab_before: Mapping[str, int] | None = None,
    config: Mapping[str, Any] | None = None,
    normalizer: dict[str, Any] | None = None,
    merge_rule: known_ranks.MergeRule = "every_split",
    name: str = "tokenizer",
) -> Tokenizer:
    """A byte-level Tokenizer that encodes as tiktoken does with these ranks.

    `ranks` are the ids; `vocab_before` are entries of the vocabulary that are no byte strings
    (tekken's special tokens). With a "bos_token" in `config` each text begins with it.
    """
    from vocabshift.text import patterns

    missing = [byte for byte in range(_BYTE_COUNT) if bytes([byte]) not in ranks]
    if missing:
        raise InvalidTokenizerError(
            f"the ranks lack {len(missing)} of the 256 single bytes, the first {missing[0]:#04x}; "
            "text with them could not be encoded"
        )
    try:
        pre_tokenizer = patterns.to_spec(patterns.get_pattern(pattern))
    except ValueError as error:
        raise InvalidTokenizerError(f"--pattern: {error}") from None
    vocab = dict(vocab_before or {})
    vocab.update((byte_level.to_image(token), rank) for token, rank in ranks.items())
    merges = getattr(rank_merges, merge_rule)(ranks)
    bos = (config or {}).get("bos_token")
    ids = {token.content: token.id for token in added_tokens}
    return Tokenizer(
        BpeModel(vocab, tuple(merges), ignore_merges=merge_rule == "every_split"),
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
        post_processor=components.byte_level_processor((bos, ids[bos]) if bos else None),
        decoder=components.BYTE_LEVEL_DECODER,
        added_tokens=added_tokens,
        config=dict(config or {}),
        name=name,
    )
