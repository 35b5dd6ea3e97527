"""TokenMap: of which old embedding rows each token of a new vocabulary is made.

Owns the comparison of two tokenizers (arXiv:2512.03989 sec. 4.6, FVT): a token that the old
vocabulary has copies its row; any other is made of the pieces that the old BPE model gives for
its bytes. Bytes, never `decode`: half a character is a token too. Knows nothing of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vocabshift.bpe import token_bytes
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import VocabMismatchError
from vocabshift.surgery.overrides import Overrides

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
