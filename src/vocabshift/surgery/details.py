"""What a transfer does to each token by name: kept, added, removed, ambiguous.

Owns the lists, complete and as vocabularies spell their tokens, so that they can be put into
overrides. The decisions are those of `token_map`; rows and files it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from vocabshift.models.folder import load_configs, load_own_tokenizer
from vocabshift.surgery import overrides as override_table
from vocabshift.surgery import row_sources as plain_plan
from vocabshift.surgery import row_sources as token_map
from vocabshift.surgery.special_ids import match_specials, roles_of_config
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.id_map import find as find_id_map
from vocabshift.tokenizer.id_map import load as load_id_map
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer


@dataclass(frozen=True)
class TokenLists:
    """Every token of both tokenizers, as plain JSON rows."""

    kept: list[dict[str, Any]]  # {token, id, old_id}; by id
    added: list[dict[str, Any]]  # {token, id, pieces}: old tokens that it is made of; by id
    removed: list[dict[str, Any]]  # {token, old_id}; by old id
    ambiguous: list[dict[str, Any]]  # {token, id, old_id, old_ids}: of the kept ones; by id

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def token_lists(
    model_source: str | Path,
    tokenizer_source: Any,
    *,
    id_map: TokenIdMap | str | Path | None = None,
    overrides: str | Path | Mapping[str, Any] | None = None,
) -> TokenLists:
    """The lists of a transfer of a saved model; arguments are those of `transfer_folder`.

    Nothing is written and no weights are read. VocabMismatchError as for the transfer.
    """
    old, new = load_own_tokenizer(model_source), open_tokenizer(tokenizer_source)
    if id_map is None:
        id_map = find_id_map(tokenizer_source)
    elif not isinstance(id_map, TokenIdMap):
        id_map = load_id_map(id_map)
    if plain_plan.check_kinds(old, new, id_map):
        assert isinstance(old, UnigramOrWordPieceTokenizer) and isinstance(
            new, UnigramOrWordPieceTokenizer
        )
        assert id_map is not None
        _, mapping = plain_plan.match_by_map(old, new, id_map)
        return _lists(mapping, _names(old), _names(new))
    assert isinstance(old, Tokenizer) and isinstance(new, Tokenizer)
    if id_map is not None:
        id_map.check(old, new)
    table = {} if overrides is None else override_table.read(overrides)
    decided = override_table.resolve(table, old, new)
    config, _ = load_configs(model_source)
    specials = match_specials(old, new, roles_of_config(config), decided.same)
    kept = None if id_map is None else id_map.new_to_old()
    mapping = token_map.match(old, specials.tokenizer, specials.new_to_old, kept, decided)
    return _lists(mapping, _names(old), _names(specials.tokenizer))


def _names(tokenizer: Tokenizer | UnigramOrWordPieceTokenizer) -> dict[int, str]:
    """Id -> token, as the vocabulary spells it."""
    vocab = (
        tokenizer.vocab
        if isinstance(tokenizer, UnigramOrWordPieceTokenizer)
        else tokenizer.model.vocab
    )
    names = {token_id: token for token, token_id in vocab.items()}
    return names | {token.id: token.content for token in tokenizer.added_tokens}


def _lists(
    mapping: token_map.TokenMap, old: Mapping[int, str], new: Mapping[int, str]
) -> TokenLists:
    pairs = list(zip(mapping.copied_to.tolist(), mapping.copied_from.tolist(), strict=True))
    taken = dict(pairs)
    pieces, made = mapping.pieces.tolist(), mapping.made.tolist()
    gone = sorted(set(mapping.old_ids.tolist()) - set(taken.values()))
    return TokenLists(
        kept=[{"token": new[i], "id": i, "old_id": old_id} for i, old_id in sorted(pairs)],
        added=[
            {"token": new[i], "id": i, "pieces": [old[piece] for piece in pieces[start:stop]]}
            for i, (start, stop) in zip(made, pairwise(mapping.offsets.tolist()), strict=True)
        ],
        removed=[{"token": old[old_id], "old_id": old_id} for old_id in gone],
        ambiguous=[
            {"token": new[i], "id": i, "old_id": taken[i], "old_ids": list(old_ids)}
            for i, old_ids in mapping.ambiguous
        ],
    )
