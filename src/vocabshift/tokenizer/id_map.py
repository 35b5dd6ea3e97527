"""`token_map.json`: maps the ids of an earlier tokenizer to those of this one.

Owns the file, its checks and how maps are joined into a chain: every change of a tokenizer writes a
map into its folder that begins at the first tokenizer of the chain. Knows nothing of the change,
and of models only that the map's `old` is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_of_tokens
from vocabshift.tokenizer.model import MAX_ID

FILE = "token_map.json"
VERSION = 1
GONE = -1
"""Stands in `old_to_new` for an old id that names no token any more, or never did."""

_AGAIN = "make it again, or delete it: without a map, tokens are matched by their bytes"


@dataclass(frozen=True, eq=False)
class TokenIdMap:
    """Old id -> new id; tokenizers are named by their `fingerprint`."""

    old: str
    new: str
    old_to_new: NDArray[np.int64]  # (old_size,) new id or GONE; no new id twice
    new_size: int  # rows of the new tokenizer: its highest id plus one
    gone: Mapping[str, int] = field(default_factory=dict)
    """Old ids without a new one, by what the first tokenizer's model calls them: should a later
    step learn such a token again, it is known."""

    @classmethod
    def between(
        cls, old: AnyTokenizer, new: AnyTokenizer, old_to_new: Mapping[int, int] | None = None
    ) -> TokenIdMap:
        """The map of one step; None: every token of `old` has its id in `new` (extending)."""
        kept = (
            {token_id: token_id for token_id in ids_of_tokens(old)}
            if old_to_new is None
            else old_to_new
        )
        return cls.of_ids(
            old.fingerprint,
            new.fingerprint,
            kept,
            old.row_count,
            new.row_count,
            vocab=old.vocab,
        )

    @classmethod
    def of_ids(
        cls,
        old: str,
        new: str,
        old_to_new: Mapping[int, int],
        old_size: int,
        new_size: int,
        *,
        vocab: Mapping[str, int] | None = None,
    ) -> TokenIdMap:
        """The map of kept ids between two fingerprints, for sizes in rows.

        `vocab`: of the old tokenizer's model, to name what is gone.
        """
        table = np.full(old_size, GONE, dtype=np.int64)
        table[list(old_to_new)] = list(old_to_new.values())
        gone = {token: i for token, i in (vocab or {}).items() if i not in old_to_new}
        return cls(old, new, table, new_size, gone)

    @property
    def old_size(self) -> int:
        """Rows of the old tokenizer: its highest id plus one."""
        return len(self.old_to_new)

    @property
    def n_kept(self) -> int:
        """Old tokens that still are there."""
        return int(np.count_nonzero(self.old_to_new != GONE))

    def new_to_old(self) -> dict[int, int]:
        """Old id of each new id that has one."""
        kept = np.flatnonzero(self.old_to_new != GONE)
        return dict(zip(self.old_to_new[kept].tolist(), kept.tolist(), strict=True))

    def then(self, later: TokenIdMap) -> TokenIdMap:
        """This map and then `later`; VocabMismatchError where that begins elsewhere."""
        if self.new != later.old or self.new_size != later.old_size:
            raise VocabMismatchError(
                f"the token map of the input leads to the tokenizer {self.new}, and the input "
                f"is {later.old}: one of the two was changed; {_AGAIN}"
            )
        table = np.full(self.old_size, GONE, dtype=np.int64)
        kept = self.old_to_new != GONE
        table[kept] = later.old_to_new[self.old_to_new[kept]]
        between = self.new_to_old()
        gone = {token: between[i] for token, i in later.gone.items() if i in between}
        return TokenIdMap(self.old, later.new, table, later.new_size, {**self.gone, **gone})

    def with_learned_again(self, vocab: Mapping[str, int]) -> TokenIdMap:
        """The map in which removed tokens that are in `vocab`, the new one, are kept."""
        known = set(self.new_to_old())
        again = {token for token in self.gone if token in vocab and vocab[token] not in known}
        if not again:
            return self
        table = self.old_to_new.copy()
        for token in again:
            table[self.gone[token]] = vocab[token]
        gone = {token: old_id for token, old_id in self.gone.items() if token not in again}
        return replace(self, old_to_new=table, gone=gone)

    def require(self, old: str, new: str) -> None:
        """VocabMismatchError unless the map leads from the tokenizer `old` to `new`."""
        for which, mapped, given in (("from", self.old, old), ("to", self.new, new)):
            if mapped != given:
                raise VocabMismatchError(
                    f"the token map leads {which} the tokenizer {mapped}, and this one is {given}; "
                    + _AGAIN
                )

    def check(self, old: AnyTokenizer, new: AnyTokenizer) -> None:
        """VocabMismatchError unless the map leads from `old` to `new` and names their tokens."""
        self.require(old.fingerprint, new.fingerprint)
        kept = self.new_to_old()
        if not kept.keys() <= ids_of_tokens(new) or not set(kept.values()) <= ids_of_tokens(old):
            raise VocabMismatchError(f"the token map names ids that no token has; {_AGAIN}")

    def save(self, folder: str | Path, name: str = FILE) -> Path:
        """Write `token_map.json` (or `name`) into a folder that is there."""
        ids = [None if token_id == GONE else token_id for token_id in self.old_to_new.tolist()]
        document = {
            "version": VERSION,
            "old": self.old,
            "new": self.new,
            "old_size": self.old_size,
            "new_size": self.new_size,
            "old_to_new": ids,
        }
        if self.gone:
            document["gone"] = dict(self.gone)
        file = Path(folder) / name
        text = json.dumps(document, separators=(",", ":"))  # ASCII: tokens may hold half characters
        file.write_text(text + "\n", encoding="utf-8")
        return file


def load(file: str | Path) -> TokenIdMap:
    """The map in a file, or in a folder's `token_map.json`; InvalidTokenizerError if damaged."""
    path = Path(file)
    path = path / FILE if path.is_dir() else path
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidTokenizerError(f"{path} is not JSON: {error}; {_AGAIN}") from None
    try:
        return _parse(document)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidTokenizerError(f"{path} is damaged: {reason}; {_AGAIN}") from None


def find(source: Any) -> TokenIdMap | None:
    """The map in the folder of a tokenizer (a folder, or a file in it), if there is one."""
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    try:
        file = (path if path.is_dir() else path.parent) / FILE
        is_there = path.exists() and file.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return None
    return load(file) if is_there else None


def chained(source: Any, step: TokenIdMap, vocab: Mapping[str, int] | None = None) -> TokenIdMap:
    """`step`, after the map in the folder of its input `source` if there is one.

    `vocab`: of the model that `step` leads to; what an earlier step took out and this one learned
    again keeps its old id.
    """
    before = find(source)
    return step if before is None else before.then(step).with_learned_again(vocab or {})


def _parse(document: Any) -> TokenIdMap:
    if not isinstance(document, dict):
        raise TypeError("it holds no object")
    if document["version"] != VERSION:
        raise ValueError(f"its version is {document['version']!r}, and {VERSION} is read")
    old, new, ids = document["old"], document["new"], document["old_to_new"]
    if not isinstance(old, str) or not isinstance(new, str) or not isinstance(ids, list):
        raise TypeError("old, new or old_to_new is of the wrong kind")
    for key in ("old_size", "new_size"):
        if type(document[key]) is not int or not 0 <= document[key] <= MAX_ID + 1:
            raise ValueError(f"{key} is {document[key]!r}")
    if len(ids) != document["old_size"]:
        raise ValueError(f"old_size is {document['old_size']}, and {len(ids)} ids are listed")
    if set(map(type, ids)) - {int, type(None)}:
        raise TypeError("old_to_new holds something that is no id")
    kept = [token_id for token_id in ids if token_id is not None]
    if kept and not 0 <= min(kept) <= max(kept) < document["new_size"]:
        raise ValueError(f"a new id is outside 0 to {document['new_size'] - 1}")
    if len(set(kept)) != len(kept):
        raise ValueError("two old ids have the same new id")
    table = np.array([GONE if token_id is None else token_id for token_id in ids], dtype=np.int64)
    return TokenIdMap(
        old, new, table, document["new_size"], _parse_gone(document.get("gone", {}), ids)
    )


def _parse_gone(gone: Any, ids: list[int | None]) -> dict[str, int]:
    """The names of ids that are gone; nothing else may be named, and nothing twice."""
    if not isinstance(gone, dict):
        raise TypeError("gone is no object")
    for token_id in gone.values():
        if type(token_id) is not int or not 0 <= token_id < len(ids) or ids[token_id] is not None:
            raise ValueError(f"gone names the id {token_id!r}, which is not gone")
    if len(set(gone.values())) != len(gone):
        raise ValueError("gone names an id twice")
    return gone
