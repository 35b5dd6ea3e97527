"""Match the tokens of a new vocabulary with those of an old one, and find the old tokens of others.

Owns the comparison of two tokenizers (arXiv:2512.03989 sec. 4.6, FVT): a token that the old
vocabulary has copies its row; for any other token the old BPE model encodes its bytes, which gives
its *old tokens* (`pieces` in code and JSON). Tokens are compared by bytes, never by `decode`: a
token may be part of a character. Unigram and WordPiece tokenizers are matched by a map alone; the
old tokens of a new token are those that the old model gives for its spelling. A special token that
`extend --special` described is made of its description's tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery.overrides import Overrides, resolve
from vocabshift.surgery.row_sources import Ids, RowSources
from vocabshift.surgery.special_ids import (
    SpecialTokens,
    given_roles,
    match_specials,
    roles_of_config,
)
from vocabshift.surgery.special_texts import described_tokens
from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.added_tokens import role_text
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_of_tokens, tokens_by_id
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint

TRANSFER_MAP = "transfer_map.json"
"""Beside a transferred model: which id each token of its first tokenizer has.

The form is that of `token_map.json`; the name is another, because what extends this model's
tokenizer must not build on it: a chain of token maps begins at a model's own tokenizer.
"""


@dataclass(frozen=True, eq=False)
class TokenMatch:
    """Which token is which: of special tokens, of all rows, and as the map that is written."""

    specials: SpecialTokens
    sources: RowSources
    id_map: TokenIdMap
    n_overridden: int = 0
    n_described: int = 0  # new tokens whose row is made of their description's tokens

    @property
    def tokenizer(self) -> Tokenizer:
        """The new tokenizer with the special tokens that it lacked."""
        return self.specials.tokenizer

    def move(self, old_id: int) -> int | None:
        """The new id of an old one; None for a removed token."""
        return self.specials.old_to_new.get(old_id, self.sources.old_to_new.get(old_id))


def match_tokenizers(
    old: AnyTokenizer,
    new: AnyTokenizer,
    *,
    config: Any,
    id_map: TokenIdMap | None,
    overrides: Mapping[str, Any],
) -> TokenMatch:
    """Compare the tokenizers of a model; `config` is the model's, which names roles.

    `id_map` and `overrides` (as the user wrote them) go before bytes. VocabMismatchError for what
    does not belong together, ValueError for overrides of a tokenizer that takes none.
    """
    if old.kind != "BPE":
        id_map = id_map or map_of_extended(old, new)
        assert id_map is not None
        if overrides:
            raise ValueError(f"overrides are not taken for a {old.kind} tokenizer")
        n_described = len(described_tokens(old, new))
        return TokenMatch(*match_by_map(old, new, id_map), id_map, n_described=n_described)
    ours, theirs = as_tokenizer(old), as_tokenizer(new)
    decided = resolve(overrides, ours, theirs)
    specials = match_specials(ours, theirs, roles_of_config(config), decided.same)
    kept = None if id_map is None else id_map.new_to_old()
    described = described_tokens(ours, specials.tokenizer)
    described = {i: made for i, made in described.items() if i not in decided.same}
    made_of = replace(decided, pieces={**described, **decided.pieces})
    sources = match(ours, specials.tokenizer, specials.new_to_old, kept, made_of)
    id_map = map_of(ours, specials.tokenizer, sources)
    return TokenMatch(specials, sources, id_map, len(decided), len(described))


def match(
    old: Tokenizer,
    new: Tokenizer,
    specials: Mapping[int, int],
    kept: Mapping[int, int] | None = None,
    overrides: Overrides | None = None,
) -> RowSources:
    """Compare two BPE tokenizers; `specials`: new id -> old id of tokens that are matched already.

    `kept`: the same of tokens that a `token_map.json` says to be old ones; others go by bytes.
    `overrides` go before all of these.
    """
    new_bytes = {**token_bytes.token_bytes(new), **_new_specials(new, specials)}
    overrides = overrides or Overrides()
    old_bytes = token_bytes.token_bytes(old)
    known = {data: token_id for token_id, data in old_bytes.items()}
    same_strings = {**_same_strings(old, new), **(kept or {})}
    copied = {**specials, **overrides.same}
    copied = {new_id: i for new_id, i in copied.items() if new_id not in overrides.pieces}
    unknown: list[int] = []
    by_bytes: dict[int, bytes] = {}
    for token_id, data in new_bytes.items():
        if token_id in copied:
            continue
        if token_id in overrides.pieces:
            unknown.append(token_id)
            continue
        old_id = same_strings.get(token_id)
        if old_id is None:
            old_id = known.get(data)
            by_bytes[token_id] = data
        if old_id is None:
            unknown.append(token_id)
        else:
            copied[token_id] = old_id
    unknown = sorted({*unknown, *overrides.pieces})
    pieces, offsets = _pieces(old, [overrides.pieces.get(i) or new_bytes[i] for i in unknown])
    copied_to = sorted(copied)
    return RowSources(
        copied_from=_array(copied[token_id] for token_id in copied_to),
        copied_to=_array(copied_to),
        made=_array(unknown),
        pieces=pieces,
        offsets=offsets,
        old_ids=_array(sorted(ids_of_tokens(old))),
        ambiguous=_ambiguous(old_bytes, by_bytes),
    )


def _ambiguous(
    old_bytes: Mapping[int, bytes], by_bytes: Mapping[int, bytes]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Of new tokens that bytes decided, those that several old tokens fit."""
    ids: dict[bytes, list[int]] = {}
    for old_id, data in old_bytes.items():
        ids.setdefault(data, []).append(old_id)
    return tuple(
        (new_id, tuple(sorted(ids[data])))
        for new_id, data in sorted(by_bytes.items())
        if len(ids.get(data, ())) > 1
    )


def _new_specials(new: Tokenizer, matched: Mapping[int, int]) -> dict[int, bytes]:
    """Special tokens that are new altogether: of them only the text is known."""
    return {
        token.id: token.content.encode()
        for token in new.added_tokens
        if token.special and token.id not in matched
    }


def _same_strings(old: Tokenizer, new: Tokenizer) -> dict[int, int]:
    """New id -> old id of equal strings, where both vocabularies are spelled alike.

    Subtle: it decides between tokens of the same bytes, such as "A" and "<0x41>".
    """
    if token_bytes.is_byte_level(old) or token_bytes.is_byte_level(new):
        return {}  # an image has its bytes to itself
    if token_bytes.is_metaspace(old) != token_bytes.is_metaspace(new):
        return {}
    if old.model.byte_fallback != new.model.byte_fallback:
        return {}
    special = {token.content for token in (*old.added_tokens, *new.added_tokens)}
    return {
        token_id: old.model.vocab[token]
        for token, token_id in new.model.vocab.items()
        if token in old.model.vocab and token not in special
    }


def _pieces(old: Tokenizer, tokens: list[bytes | tuple[int, ...]]) -> tuple[Ids, Ids]:
    """Old tokens of the new tokens' bytes, or those that were given; none where the old tokenizer
    lacks every byte."""
    if not tokens:
        return _array(()), np.zeros(1, np.int64)
    find = token_bytes.piece_finder(old)
    flat: list[int] = []
    offsets = [0]
    for data in tokens:
        flat += data if isinstance(data, tuple) else find(data)
        offsets.append(len(flat))
    return _array(flat), _array(offsets)


def _array(values: Iterable[int]) -> Ids:
    return np.array(list(values), dtype=np.int64)


def map_of(old: Tokenizer, tokenizer: Tokenizer, sources: RowSources) -> TokenIdMap:
    """What `transfer_map.json` says; of several tokens that copy one row it names the first."""
    return TokenIdMap.of_ids(
        fingerprint(old),
        fingerprint(tokenizer),
        sources.old_to_new,
        old.row_count,
        tokenizer.row_count,
    )


def check_kinds(old: AnyTokenizer, new: AnyTokenizer, id_map: TokenIdMap | None) -> bool:
    """Whether both are Unigram or WordPiece, and the map is theirs.

    VocabMismatchError for one of these with another kind, or without a map.
    """
    plain = [tokenizer for tokenizer in (old, new) if tokenizer.kind != "BPE"]
    if not plain:
        return False
    if len(plain) == 1:
        raise VocabMismatchError(
            f"{plain[0].name} is a {plain[0].kind} tokenizer and the other one is not: whose "
            "tokens are made of which is not known; Unigram and WordPiece tokenizers can be "
            "pruned and transferred, not exchanged"
        )
    id_map = id_map or map_of_extended(old, new)
    if id_map is None:
        raise VocabMismatchError(
            f"a {old.kind} tokenizer can be transferred to one that `vocabshift prune` or `extend` "
            f"made of it; beside {new.name} there is no token_map.json"
        )
    id_map.require(old.fingerprint, new.fingerprint)
    return True


def map_of_extended(old: AnyTokenizer, new: AnyTokenizer) -> TokenIdMap | None:
    """The map to a tokenizer in which every old token has its id; None for any other."""
    is_extended = tokens_by_id(old).items() <= tokens_by_id(new).items()
    return TokenIdMap.between(old, new) if is_extended else None


def match_by_map(
    old: AnyTokenizer, new: AnyTokenizer, id_map: TokenIdMap
) -> tuple[SpecialTokens, RowSources]:
    """Special ids and rows as the map says, new tokens made of those of their spelling.

    VocabMismatchError for a map that names ids which no token has.
    """
    new_to_old = id_map.new_to_old()
    new_ids, old_ids = ids_of_tokens(new), ids_of_tokens(old)
    if not new_to_old.keys() <= new_ids or not set(new_to_old.values()) <= old_ids:
        raise VocabMismatchError("the token map names ids that no token has; make it again")
    kept = sorted(new_to_old)
    made = sorted(new_ids - new_to_old.keys())
    pieces = _spelled(old, new, made)
    sources = RowSources(
        copied_from=np.array([new_to_old[token_id] for token_id in kept], dtype=np.int64),
        copied_to=np.array(kept, dtype=np.int64),
        made=_array(made),
        pieces=_array(chain.from_iterable(pieces)),
        offsets=_array([0, *accumulate(map(len, pieces))]),
        old_ids=np.array(sorted(old_ids), dtype=np.int64),
    )
    given = given_roles(new)
    had = {role: role_text(old.config, role) for role in given}
    ids = {token.content: token.id for token in old.added_tokens}
    by_role = {role: (ids[text], given[role]) for role, text in had.items() if text in ids}
    tokenizer: Any = new  # whatever can be written and has rows
    old_to_new = {old_id: new_id for new_id, old_id in new_to_old.items()}
    return SpecialTokens(tokenizer, {}, old_to_new, by_role, given), sources


def _spelled(old: AnyTokenizer, new: AnyTokenizer, made: list[int]) -> list[tuple[int, ...]]:
    """Old tokens of each of these new ones: of its description, its text, or its spelling."""
    described, model = described_tokens(old, new), old.backend.model
    named = {token_id: token for token, token_id in new.vocab.items()}
    texts = {token.id: token.content for token in new.added_tokens}
    found = []
    for token_id in made:
        ids = described.get(token_id)
        if ids is None and token_id in texts:
            encoded, _ = old.encode_batch([texts[token_id]], parse_special=False)
            ids = tuple(encoded.tolist())
        found.append(ids or tuple(piece.id for piece in model.tokenize(named[token_id])))
    return found
