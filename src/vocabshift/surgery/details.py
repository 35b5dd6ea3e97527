"""The tokens that a transfer keeps, adds and removes, and those that are ambiguous, by name.

Owns the lists. They are complete and spelled as in the vocabularies, so that entries can be copied
into overrides. The decisions are those of `matching`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from vocabshift.models.folder import load_own_tokenizer
from vocabshift.models.load import load_configs
from vocabshift.surgery.checks import open_tokenizers, opened
from vocabshift.surgery.matching import match_tokenizers, token_names
from vocabshift.surgery.options import TransferOptions
from vocabshift.surgery.row_sources import RowSources
from vocabshift.tokenizer.id_map import TokenIdMap


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
    options: TransferOptions,
) -> TokenLists:
    """The lists for the transfer of a saved model; of the options only map and overrides matter.

    Nothing is written and no weights are read. VocabMismatchError as for the transfer.
    """
    named = TransferOptions(
        id_map=options.id_map,
        overrides=options.overrides,
        complete_bytes=options.complete_bytes,
    )
    options = opened(named, tokenizer_source)  # a donor need not be loaded
    old, new = open_tokenizers(load_own_tokenizer(model_source), tokenizer_source, options)
    assert options.id_map is None or isinstance(options.id_map, TokenIdMap)
    assert isinstance(options.overrides, Mapping)
    config, _ = load_configs(model_source)
    match = match_tokenizers(
        old, new, config=config, id_map=options.id_map, overrides=options.overrides
    )
    return _lists(match.sources, token_names(old), token_names(match.tokenizer))


def _lists(sources: RowSources, old: Mapping[int, str], new: Mapping[int, str]) -> TokenLists:
    pairs = list(zip(sources.copied_to.tolist(), sources.copied_from.tolist(), strict=True))
    taken = dict(pairs)
    pieces, made = sources.pieces.tolist(), sources.made.tolist()
    gone = sorted(set(sources.old_ids.tolist()) - set(taken.values()))
    return TokenLists(
        kept=[{"token": new[i], "id": i, "old_id": old_id} for i, old_id in sorted(pairs)],
        added=[
            {"token": new[i], "id": i, "pieces": [old[piece] for piece in pieces[start:stop]]}
            for i, (start, stop) in zip(made, pairwise(sources.offsets.tolist()), strict=True)
        ],
        removed=[{"token": old[old_id], "old_id": old_id} for old_id in gone],
        ambiguous=[
            {"token": new[i], "id": i, "old_id": taken[i], "old_ids": list(old_ids)}
            for i, old_ids in sources.ambiguous
        ],
    )
