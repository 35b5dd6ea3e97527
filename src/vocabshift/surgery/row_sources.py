"""TokenMap: of which old embedding rows each token of a new vocabulary is made.

Owns the comparison of two tokenizers (arXiv:2512.03989 sec. 4.6, FVT): a token that the old
vocabulary has copies its row; any other is made of the pieces that the old BPE model gives for
its bytes. Bytes, never `decode`: half a character is a token too. Knows nothing of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery.overrides import Overrides
from vocabshift.surgery.special_ids import SpecialTokens
from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

Ids = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TokenMap:
    """Every id of the new tokenizer, either copied from one old id or made of several."""

    copied_from: Ids  # (n_copied,) old ids
    copied_to: Ids  # (n_copied,) new ids
    made: Ids  # (n_made,) new ids without a counterpart
    pieces: Ids  # (n_pieces,) old ids of all made tokens, one token after the other
    offsets: Ids  # (n_made + 1,) token i of `made` has pieces[offsets[i] : offsets[i + 1]]
    old_ids: Ids  # (n_old,) every id that names a token of the old tokenizer, ascending
    ambiguous: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(new id, old ids) of copied tokens whose bytes several old tokens have; one was taken."""
    weights: Weights | None = None  # (n_pieces,) of the pieces; None: those of a token count alike

    @property
    def mixture(self) -> tuple[Ids, Ids, Weights]:
        """Pieces, offsets and weights (none of them: an empty array) of the made tokens."""
        weights = np.zeros(0) if self.weights is None else self.weights
        return self.pieces, self.offsets, weights

    @property
    def n_copied(self) -> int:
        """New tokens that copy a row."""
        return len(self.copied_to)

    @property
    def n_made(self) -> int:
        """New tokens whose row is made of several."""
        return len(self.made)

    @property
    def n_removed(self) -> int:
        """Old tokens that no new token copies."""
        return len(self.old_ids) - len(np.unique(self.copied_from))

    @cached_property
    def old_to_new(self) -> dict[int, int]:
        """New id of each kept old id; the lowest where several copy it."""
        pairs = zip(self.copied_from.tolist(), self.copied_to.tolist(), strict=True)
        return dict(sorted(pairs, reverse=True))


def match(
    old: Tokenizer,
    new: Tokenizer,
    specials: Mapping[int, int],
    kept: Mapping[int, int] | None = None,
    overrides: Overrides | None = None,
) -> TokenMap:
    """Compare two tokenizers; `specials`: new id -> old id of tokens that are matched already.

    `kept`: the same of tokens that a `token_map.json` says to be old ones; others go by bytes.
    `overrides` go before all of these.
    VocabMismatchError where the old tokenizer has no piece at all for a new token.
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
    return TokenMap(
        copied_from=_array(copied[token_id] for token_id in copied_to),
        copied_to=_array(copied_to),
        made=_array(unknown),
        pieces=pieces,
        offsets=offsets,
        old_ids=_array(sorted({*old.model.vocab.values(), *(t.id for t in old.added_tokens)})),
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
    """Pieces of the tokens' bytes, or those that were given."""
    if not tokens:
        return _array(()), np.zeros(1, np.int64)
    find = token_bytes.piece_finder(old)
    flat: list[int] = []
    offsets = [0]
    for data in tokens:
        flat += data if isinstance(data, tuple) else find(data)
        if len(flat) == offsets[-1]:
            raise VocabMismatchError(
                f"the old tokenizer has no piece for any byte of the new token {data!r}; "
                "it needs all 256 bytes, byte pieces or an unknown token"
            )
        offsets.append(len(flat))
    return _array(flat), _array(offsets)


def _array(values: Iterable[int]) -> Ids:
    return np.array(list(values), dtype=np.int64)


# `transfer_map.json`: beside a transferred model, which id each token of its first tokenizer has.
#
# The form is that of `token_map.json`; the name is another, because what extends this model's
# tokenizer must not build on it: a chain of token maps begins at a model's own tokenizer.


FILE = "transfer_map.json"


def map_of(old: Tokenizer, tokenizer: Tokenizer, mapping: TokenMap) -> TokenIdMap:
    """The map of a transfer; of several tokens that copy one row it names the first."""
    return TokenIdMap.of_ids(
        fingerprint(old),
        fingerprint(tokenizer),
        mapping.old_to_new,
        old.row_count,
        tokenizer.row_count,
    )


# Unigram and WordPiece tokenizers that were pruned: rows follow the token map alone.
#
# Owns the TokenMap and the special ids of such a pair. There are no new tokens (of what old pieces
# one would be made is not known), so no initializer has anything to do.


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


def _ids(tokenizer: UnigramOrWordPieceTokenizer) -> set[int]:
    return {*tokenizer.vocab.values(), *(token.id for token in tokenizer.added_tokens)}
