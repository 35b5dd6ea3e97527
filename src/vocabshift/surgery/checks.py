"""Checks before any row is read: options, tokenizers, their map, padding, ids.

Owns the error messages, and opening the files that options name. Knows nothing of tables.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.checks.vocabulary import with_unused
from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import overrides
from vocabshift.surgery.config_ids import Change
from vocabshift.surgery.matching import check_kinds
from vocabshift.surgery.methods import check_init, open_sources
from vocabshift.surgery.options import AUTO, TransferOptions
from vocabshift.surgery.row_sources import RowSources
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import as_tokenizer, open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.id_map import find as find_id_map
from vocabshift.tokenizer.id_map import load as load_id_map
from vocabshift.tokenizer.missing_bytes import (
    SHOWN,
    lost_characters,
    names_of,
    with_missing_bytes,
)
from vocabshift.tokenizer.tokenizer import Tokenizer


def check_tokenizers(old: Any, new: Any, id_map: TokenIdMap | None) -> None:
    """VocabMismatchError if no rows can be moved between the two, or the map is not theirs."""
    if check_kinds(old, new, id_map):
        return
    check_usable(old, new)
    if id_map is not None:
        id_map.check(old, new)


def check_pad(changes: list[Change]) -> None:
    """VocabMismatchError if the pad token would get another id."""
    moved = [change for change in changes if change.role == "pad" and change.old != change.new]
    if moved:
        raise VocabMismatchError(
            f"this model counts positions from the id of its pad token, {moved[0].old}, which "
            f"would become {moved[0].new}; give the new tokenizer its pad token under the same id"
        )


def check_options(options: TransferOptions) -> None:
    """ValueError for an initializer that is unknown or lacks something, or impossible padding."""
    check_init(options)
    if options.init == AUTO and options.score is None:
        raise ValueError(
            "init 'auto' needs text to try the initializers on (vocabshift.transfer: text=, "
            "command line: --text SPEC), or score=: a function of model and tokenizer"
        )
    multiple = options.pad_to_multiple_of
    if multiple is not None and multiple < 1:
        raise ValueError(f"pad_to_multiple_of is {multiple}; it must be 1 or more")


def opened(options: TransferOptions, new: Any) -> TransferOptions:
    """The checked options with what they name read: overrides, the map, a donor, texts.

    `new`: the new tokenizer as it was given, whose folder may hold a map.
    """
    table = {} if options.overrides is None else overrides.read(options.overrides)
    id_map = open_map(options.id_map, new)
    return replace(open_sources(options), overrides=table, id_map=id_map)


def open_map(given: TokenIdMap | str | Path | None, new: Any) -> TokenIdMap | None:
    """The map given, or the one in the new tokenizer's folder."""
    if given is None:
        return find_id_map(new)
    return given if isinstance(given, TokenIdMap) else load_id_map(given)


def open_tokenizers(old: Any, new: Any, options: TransferOptions) -> tuple[Any, Any]:
    """Both tokenizers, checked against each other and the map; `new` with what is added to it.

    `options`: opened ones. VocabMismatchError where no rows can be moved between the two.
    """
    old, new = open_tokenizer(old), open_tokenizer(new)
    assert options.id_map is None or isinstance(options.id_map, TokenIdMap)
    check_tokenizers(old, new, options.id_map)
    if options.complete_bytes:
        new = with_missing_bytes(as_tokenizer(new))
    check_loss(old, new)
    return old, with_dummies(new, options.reserve_dummies)


def with_dummies(new: Any, n: int) -> Any:
    """The new tokenizer with `n` tokens that no text has; ValueError where it takes none."""
    if n and not isinstance(new, Tokenizer):
        raise ValueError(f"reserve_dummies is for BPE tokenizers; {new.name} is a {new.kind} one")
    return with_unused(new, n) if n else new


def check_usable(old: Tokenizer, new: Tokenizer) -> None:
    """VocabMismatchError where a tokenizer is of a kind whose tokens cannot be compared."""
    for which, tokenizer in (("old", old), ("new", new)):
        model = tokenizer.model
        if model.continuing_subword_prefix or model.end_of_word_suffix:
            raise VocabMismatchError(
                f"the {which} tokenizer marks the parts of words "
                f"({model.continuing_subword_prefix or model.end_of_word_suffix!r}); "
                "only byte-level and SentencePiece spellings can be transferred"
            )


def check_loss(old: AnyTokenizer, new: AnyTokenizer) -> None:
    """VocabMismatchError where the new tokenizer lacks bytes of characters that the old one has."""
    lost = np.setdiff1d(lost_characters(new), lost_characters(old))
    if len(lost):
        named = ", ".join(names_of(lost[:SHOWN])) + (", …" if len(lost) > SHOWN else "")
        raise VocabMismatchError(
            f"the new tokenizer lacks bytes and would lose {len(lost):,} assigned characters that "
            f"the old one keeps ({named}); train it with the whole byte alphabet, or give "
            "--complete-bytes, which adds the missing bytes as tokens"
        )


def offsets_of(config: Any) -> dict[str, int]:
    """Name of a part of the config -> the first id that this part embeds."""
    parts = {name: part for name, part in vars(config).items() if not name.startswith("_")}
    found = {name: getattr(part, "vocab_offset", None) for name, part in parts.items()}
    return {name: offset for name, offset in found.items() if isinstance(offset, int)}


def check_offsets(config: Any, sources: RowSources, rows: int, n_rows: int) -> None:
    """VocabMismatchError where tokens from a `vocab_offset` on, or the number of rows, change.

    Gemma 3n embeds every id from its vision (then its audio) config's `vocab_offset` on with a
    small table of that part, and not with the text's row: new tokens with such ids would be taken
    for images. `rows`, `n_rows`: of the embeddings before and after (the last id ends an
    audio's padding).
    """
    offsets = offsets_of(config)
    if not offsets:
        return
    first = min(offsets.values())
    copied_from, copied_to = sources.copied_from, sources.copied_to
    moved = copied_from != copied_to
    wrong = [
        *copied_to[moved & ((copied_to >= first) | (copied_from >= first))].tolist(),
        *sources.made[sources.made >= first].tolist(),
    ]
    old_ids = sources.old_ids
    lost = np.setdiff1d(old_ids[old_ids >= first], copied_from).tolist()
    reasons = []
    if wrong:
        reasons.append(f"{len(wrong)} tokens would move there or away, such as new id {wrong[0]}")
    if lost:
        reasons.append(f"{len(lost)} tokens there would be gone, such as old id {lost[0]}")
    if n_rows != rows:
        reasons.append(f"the rows would become {n_rows} instead of {rows}")
    if reasons:
        raise VocabMismatchError(
            f"this model embeds the ids from {first} on by its {' and '.join(offsets)} "
            f"(vocab_offset), and {'; '.join(reasons)}. Give a tokenizer that has all tokens from "
            f"{first} on under the same ids and its own below (as many tokens removed as added), "
            "or transfer the text model alone"
        )
