"""Match the tokens of a new vocabulary with those of an old one, and find the old tokens of others.

Owns the comparison of two tokenizers (arXiv:2512.03989 sec. 4.6, FVT): a token that the old
vocabulary has copies its row; for any other token the old BPE model encodes its bytes, which gives
its *old tokens* (`pieces` in code and JSON). Tokens are compared by bytes, never by `decode`: a
token may be part of a character. Unigram and WordPiece tokenizers are matched by a map alone: the
old tokens of a new token are not defined there, so they may lose tokens but not gain any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery.overrides import Overrides, resolve
from vocabshift.surgery.row_sources import Ids, RowSources
from vocabshift.surgery.special_ids import SpecialTokens, match_specials, roles_of_config
from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

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

    @property
    def tokenizer(self) -> Tokenizer:
        """The new tokenizer with the special tokens that it lacked."""
        return self.specials.tokenizer

    def move(self, old_id: int) -> int | None:
        """The new id of an old one; None for a removed token."""
        return self.specials.old_to_new.get(old_id, self.sources.old_to_new.get(old_id))


def match_tokenizers(
    old: Tokenizer | UnigramOrWordPieceTokenizer,
    new: Tokenizer | UnigramOrWordPieceTokenizer,
    *,
    config: Any,
    id_map: TokenIdMap | None,
    overrides: Mapping[str, Any],
) -> TokenMatch:
    """Compare the tokenizers of a model; `config` is the model's, which names roles.

    `id_map` and `overrides` (as the user wrote them) go before bytes. VocabMismatchError for what
    does not belong together, ValueError for overrides of a tokenizer that takes none.
    """
    if isinstance(old, UnigramOrWordPieceTokenizer) and isinstance(
        new, UnigramOrWordPieceTokenizer
    ):
        assert id_map is not None
        if overrides:
            raise ValueError(f"overrides are not taken for a {old.kind} tokenizer")
        return TokenMatch(*match_by_map(old, new, id_map), id_map)
    assert isinstance(old, Tokenizer) and isinstance(new, Tokenizer)
    decided = resolve(overrides, old, new)
    specials = match_specials(old, new, roles_of_config(config), decided.same)
    kept = None if id_map is None else id_map.new_to_old()
    sources = match(old, specials.tokenizer, specials.new_to_old, kept, decided)
    return TokenMatch(specials, sources, map_of(old, specials.tokenizer, sources), len(decided))


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
        old_ids=_array(sorted(token_ids(old))),
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


def token_ids(tokenizer: Tokenizer | UnigramOrWordPieceTokenizer) -> set[int]:
    """Every id that names a token."""
    return set(token_names(tokenizer))


def token_names(tokenizer: Tokenizer | UnigramOrWordPieceTokenizer) -> dict[int, str]:
    """Id -> token, as the vocabulary spells it."""
    vocab = (
        tokenizer.vocab
        if isinstance(tokenizer, UnigramOrWordPieceTokenizer)
        else tokenizer.model.vocab
    )
    names = {token_id: token for token, token_id in vocab.items()}
    return names | {token.id: token.content for token in tokenizer.added_tokens}


def check_kinds(old: Any, new: Any, id_map: TokenIdMap | None) -> bool:
    """Whether both are Unigram or WordPiece, and the map is theirs.

    VocabMismatchError for one of these with another kind, or without a map.
    """
    plain = [
        tokenizer for tokenizer in (old, new) if isinstance(tokenizer, UnigramOrWordPieceTokenizer)
    ]
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
    old: UnigramOrWordPieceTokenizer, new: UnigramOrWordPieceTokenizer, id_map: TokenIdMap
) -> tuple[SpecialTokens, RowSources]:
    """Special ids and rows as the map says; VocabMismatchError for a token it lacks."""
    new_to_old = id_map.new_to_old()
    new_ids, old_ids = token_ids(new), token_ids(old)
    unknown = sorted(new_ids - new_to_old.keys())
    if unknown or not set(new_to_old.values()) <= old_ids:
        raise VocabMismatchError(
            f"the token map does not say which old token the new id {unknown[:1]} is; new tokens "
            "of Unigram and WordPiece tokenizers cannot be made of old rows"
        )
    kept = sorted(new_ids)
    old_to_new = {new_to_old[token_id]: token_id for token_id in kept}
    none = np.zeros(0, dtype=np.int64)
    sources = RowSources(
        copied_from=np.array([new_to_old[token_id] for token_id in kept], dtype=np.int64),
        copied_to=np.array(kept, dtype=np.int64),
        made=none,
        pieces=none,
        offsets=np.zeros(1, dtype=np.int64),
        old_ids=np.array(sorted(old_ids), dtype=np.int64),
    )
    tokenizer: Any = new  # whatever can be written and has rows
    return SpecialTokens(tokenizer, {}, old_to_new, {}), sources
