"""What a transfer is asked for, looked at before any row is: tokenizers, their map, padding, pad.

Owns which pairs are refused and in what words. Knows nothing of matrices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vocabshift.checks import vocabulary as unused_tokens
from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import row_sources as plain_plan
from vocabshift.surgery.config_ids import Change
from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.id_map import find as find_id_map
from vocabshift.tokenizer.id_map import load as load_id_map
from vocabshift.tokenizer.tokenizer import Tokenizer


def check_tokenizers(old: Any, new: Any, id_map: TokenIdMap | None) -> None:
    """VocabMismatchError for two tokenizers that no rows can be moved between, or another map."""
    if plain_plan.check_kinds(old, new, id_map):
        return
    check_usable(old, new)
    if id_map is not None:
        id_map.check(old, new)


def check_pad(changes: list[Change]) -> None:
    """VocabMismatchError where the pad token would get another id."""
    moved = [change for change in changes if change.role == "pad" and change.old != change.new]
    if moved:
        raise VocabMismatchError(
            f"this model counts positions from the id of its pad token, {moved[0].old}, which "
            f"would become {moved[0].new}; give the new tokenizer its pad token under the same id"
        )


def check_padding(multiple: int | None) -> None:
    """ValueError for what rows cannot be a multiple of."""
    if multiple is not None and multiple < 1:
        raise ValueError(f"pad_to_multiple_of is {multiple}; it must be 1 or more")


def open_map(given: TokenIdMap | str | Path | None, new: Any) -> TokenIdMap | None:
    """The map given, or the one beside the new tokenizer."""
    if given is None:
        return find_id_map(new)
    return given if isinstance(given, TokenIdMap) else load_id_map(given)


def with_dummies(new: Any, n: int) -> Any:
    """The new tokenizer with `n` tokens that no text has; ValueError where it takes none."""
    if n and not isinstance(new, Tokenizer):
        raise ValueError(f"reserve_dummies is for BPE tokenizers; {new.name} is a {new.kind} one")
    return unused_tokens.with_unused(new, n) if n else new


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
    if not token_bytes.is_complete(new):
        raise VocabMismatchError(
            "the new tokenizer lacks some of the 256 bytes and has no unknown token: it would "
            "lose text; train it with the whole byte alphabet"
        )
