"""tiktoken rank files: base64 token, a space, its rank, one per line.

Owns the file format, the conversion of ranks to a Tokenizer, and reading an `Encoding` of the
tiktoken library, which is used only for `tiktoken:NAME`. The file has neither pattern nor special
tokens: `known_ranks` supplies them, or the caller gives a pattern. Owns also the three rules by
which `tokenizers` can encode a vocabulary whose own encoder needs no merge list.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from vocabshift import _core
from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import byte_level, components
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats import known_ranks
from vocabshift.tokenizer.model import BpeModel, Merge
from vocabshift.tokenizer.tokenizer import Tokenizer


def every_split(ranks: Mapping[bytes, int]) -> list[Merge]:
    """Every split of every token into two tokens, by (rank of token, of left, of right part).

    With `ignore_merges` this is tiktoken's own rule: the pair whose *product* has the lowest rank
    merges first. (transformers' TikTokenConverter; byte images.)
    """
    tokens = sorted(ranks, key=ranks.__getitem__)
    products, lefts, rights = _core.split_tokens(tokens)
    images = np.array(byte_level.all_to_images(tokens), dtype=object)
    order = np.lexsort((rights, lefts, products))
    return list(zip(images[lefts[order]], images[rights[order]], strict=True))


def one_split(ranks: Mapping[bytes, int]) -> list[Merge]:
    """One merge per token: the last one that BPE makes on the way to it (byte images).

    This recovers the merge list that the ranks were made of (Qwen's released one). A token that
    lower ranks do not build from two parts gets none.
    """
    tokens = sorted(ranks, key=ranks.__getitem__)
    image = dict(zip(tokens, byte_level.all_to_images(tokens), strict=True))
    splits: list[list[tuple[bytes, bytes]]] = [[] for _ in tokens]
    found = (ids.tolist() for ids in _core.split_tokens(tokens))
    for product, left, right in zip(*found, strict=True):
        splits[product].append((tokens[left], tokens[right]))
    merges: list[Merge] = []
    for token, of_token in zip(tokens, splits, strict=True):
        halves = of_token
        if len(of_token) > 1:
            parts = _parts_below(token, ranks)
            halves = [(parts[0], parts[1])] if len(parts) == 2 else []
        merges += [(image[left], image[right]) for left, right in halves]
    return merges


def by_score(vocab: Mapping[str, int], scores: Mapping[str, float]) -> list[Merge]:
    """Every split of every piece into two pieces, best score first.

    Among equal scores the longer left part, then the longer right part goes first; then the
    order of `scores` (transformers' `generate_merges`). SentencePiece itself merges the pair
    whose product scores best.
    """
    pieces = list(vocab)
    splits = _core.split_tokens([piece.encode("utf-8", "surrogatepass") for piece in pieces])
    place = {piece: number for number, piece in enumerate(scores)}
    merges: list[tuple[tuple[Any, ...], Merge]] = []
    for product, left_id, right_id in zip(*(ids.tolist() for ids in splits), strict=True):
        piece, left, right = pieces[product], pieces[left_id], pieces[right_id]
        if piece in scores:
            of_score = (-scores[piece], -len(left), -len(right))
            merges.append(((*of_score, place[piece], vocab[left], vocab[right]), (left, right)))
    merges.sort()
    return [merge for _, merge in merges]


def _parts_below(token: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """The parts that BPE leaves of a token when only lower ranks may merge."""
    parts = [token[index : index + 1] for index in range(len(token))]
    limit = ranks[token]
    while len(parts) > 2:
        rank, at = min(_ranked_pairs(parts, ranks, limit), default=(limit, 0))
        if rank >= limit:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _ranked_pairs(
    parts: list[bytes], ranks: Mapping[bytes, int], limit: int
) -> Iterator[tuple[int, int]]:
    for at in range(len(parts) - 1):
        yield ranks.get(parts[at] + parts[at + 1], limit), at


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

    `ranks` are the ids; `vocab_before` are vocabulary entries that are not byte strings
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
    vocab.update(zip(byte_level.all_to_images(list(ranks)), ranks.values(), strict=True))
    merges = {"every_split": every_split, "one_split": one_split}[merge_rule](ranks)
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


PREFIX = "tiktoken:"
"""In front of the name of an encoding, such as "tiktoken:o200k_base"."""


def is_encoding(value: Any) -> bool:
    """Whether `value` is a `tiktoken.Encoding`; tiktoken is not imported for it."""
    return type(value).__module__.split(".")[0] == "tiktoken" and hasattr(value, "_mergeable_ranks")


def load_encoding(name: str) -> Tokenizer:
    """The Tokenizer of an encoding of that name, as the installed tiktoken knows it.

    ImportError without tiktoken, FileNotFoundError where it does not know the name or cannot
    fetch its file.
    """
    try:
        import tiktoken
    except ImportError:
        raise ImportError(
            f"{PREFIX}{name} needs tiktoken: pip install tiktoken, or give the rank file itself"
        ) from None
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # of tiktoken, or of the network client that it uses
        reason = " ".join(str(error).split())[:160]
        raise FileNotFoundError(f"tiktoken does not give {name!r}: {reason}") from None
    return from_encoding(encoding)


_POSSESSIVE = re.compile(
    r"(\\[pP]\{\w+\}|\\.|\[(?:\\.|[^]\\])+\]|[^]\\)}])(\{\d+(?:,\d*)?\})\+", re.DOTALL
)


def _atomic(regex: str) -> str:
    """With `(?>x{1,3})` for tiktoken's `x{1,3}+`, which would be a repetition in `tokenizers`."""
    return _POSSESSIVE.sub(r"(?>\1\2)", regex)


def from_encoding(encoding: Any) -> Tokenizer:
    """Return a Tokenizer with the ids of a `tiktoken.Encoding`, special tokens included."""
    mergeable: dict[bytes, int] = dict(encoding._mergeable_ranks)
    known = known_ranks.recognise(mergeable)
    special: dict[str, int] = dict(encoding._special_tokens)
    added = tuple(
        AddedToken(content, token_id, special=True)
        for content, token_id in sorted(special.items(), key=lambda entry: entry[1])
    )
    try:
        return byte_level_tokenizer(
            mergeable,
            pattern=known.pattern if known else _atomic(encoding._pat_str),
            added_tokens=added,
            name=encoding.name,
        )
    except InvalidTokenizerError as error:
        raise InvalidTokenizerError(f"tiktoken's {encoding.name}: {error}") from None
