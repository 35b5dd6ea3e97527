"""The ids in a post-processor: which they are, and the same with other ids.

Owns where the post-processors of `tokenizers` hold ids (TemplateProcessing, BertProcessing,
RobertaProcessing, and Sequences of these).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.tokenizer import Spec

_PAIRS = {"BertProcessing": ("sep", "cls"), "RobertaProcessing": ("sep", "cls")}


def ids_of(spec: Spec | None) -> set[int]:
    """Every id that the post-processor puts into a text."""
    found: set[int] = set()

    def see(token_id: int) -> int:
        found.add(token_id)
        return token_id

    _map(spec, see)
    return found


def with_ids(spec: Spec | None, old_to_new: Mapping[int, int]) -> Spec | None:
    """The same post-processor with every id replaced.

    InvalidTokenizerError for an id that names no token.
    """

    def new_id(token_id: int) -> int:
        if token_id not in old_to_new:
            raise InvalidTokenizerError(
                f"the post-processor puts the id {token_id} into every text, and no token has it; "
                "correct the post_processor of tokenizer.json"
            )
        return old_to_new[token_id]

    mapped: Spec | None = _map(spec, new_id)
    return mapped


def _map(spec: Spec | None, new_id: Any) -> Any:
    if spec is None:
        return None
    kind = spec.get("type")
    if kind == "Sequence":
        return {**spec, "processors": [_map(step, new_id) for step in spec["processors"]]}
    if kind in _PAIRS:
        return {**spec, **{key: [spec[key][0], new_id(spec[key][1])] for key in _PAIRS[kind]}}
    if kind == "TemplateProcessing":
        tokens = {
            name: {**entry, "ids": [new_id(token_id) for token_id in entry["ids"]]}
            for name, entry in _entries(spec["special_tokens"])
        }
        return {**spec, "special_tokens": tokens}
    return spec


def _entries(tokens: Any) -> list[tuple[str, Any]]:
    """The special tokens of a template, by name; written as an object or as a list."""
    if isinstance(tokens, Mapping):
        return list(tokens.items())
    return [(entry["id"], entry) for entry in tokens]
