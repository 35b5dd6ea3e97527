"""Overrides: the user's decisions about single tokens, which replace matching by bytes and roles.

Owns the file (JSON or TOML: one table, new token -> old) and its checks against both tokenizers. A
key is a new token, as its vocabulary spells it or as text, or "id:N". A value is an old token or
id, whose row is copied, or a list of these, from which the row is made.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vocabshift.errors import VocabMismatchError
from vocabshift.tokenizer import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer

_ID = "id:"


@dataclass(frozen=True)
class Overrides:
    """Checked overrides, as ids."""

    same: Mapping[int, int] = field(default_factory=dict)  # new id -> old id
    pieces: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # new id -> old ids

    def __len__(self) -> int:
        return len(self.same) + len(self.pieces)


def read(source: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """The table of a file, by its ending, or one that is given; ValueError for anything else."""
    if isinstance(source, Mapping):
        return source
    path = Path(source)
    text = path.read_bytes()
    try:
        table = tomllib.loads(text.decode("utf-8")) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ValueError(f"{path} is not {kind}: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(
            f"{path} holds a {type(table).__name__}; it must be one table of new token -> old"
        )
    return table


def resolve(table: Mapping[str, Any], old: Tokenizer, new: Tokenizer) -> Overrides:
    """The ids of a table; VocabMismatchError for a token that a tokenizer does not have."""
    find_old, find_new = _Finder(old, "old"), _Finder(new, "new")
    same: dict[int, int] = {}
    pieces: dict[int, tuple[int, ...]] = {}
    for key, value in table.items():
        new_id = find_new(key, key)
        if new_id in same or new_id in pieces:
            raise VocabMismatchError(f"overrides name the new token {key!r} (id {new_id}) twice")
        if isinstance(value, list):
            if not value:
                raise VocabMismatchError(f"overrides give {key!r} no old token; name at least one")
            pieces[new_id] = tuple(find_old(each, key) for each in value)
        else:
            same[new_id] = find_old(value, key)
    return Overrides(same, pieces)


class _Finder:
    """A tokenizer's tokens by id, by spelling and by text."""

    def __init__(self, tokenizer: Tokenizer, which: str) -> None:
        self._which = which
        self._spelled = {
            **tokenizer.model.vocab,
            **{token.content: token.id for token in tokenizer.added_tokens},
        }
        self._ids = set(self._spelled.values())
        self._bytes = {data: i for i, data in token_bytes.token_bytes(tokenizer).items()}

    def __call__(self, named: Any, key: str) -> int:
        if isinstance(named, str):
            if named.startswith(_ID) and named[len(_ID) :].isdecimal():
                named = int(named[len(_ID) :])
            else:
                found = self._spelled.get(named, self._bytes.get(named.encode()))
                if found is None:
                    raise VocabMismatchError(
                        f"overrides ({key!r}): the {self._which} tokenizer has no token {named!r}; "
                        "spell it as its vocabulary does, as text, or as id:N"
                    )
                return found
        if isinstance(named, bool) or not isinstance(named, int):
            raise VocabMismatchError(
                f"overrides ({key!r}): {named!r} is no token; give a string, an id or a list of "
                "these"
            )
        if named not in self._ids:
            raise VocabMismatchError(
                f"overrides ({key!r}): the {self._which} tokenizer has no id {named}"
            )
        return named
