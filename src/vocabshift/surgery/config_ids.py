"""The token ids that a model's config, generation config and processors hold, and their sizes.

Owns the list of keys that hold ids. There are two steps: `plan` determines every new id, and
refuses ids that cannot be moved, before anything is changed; `apply` writes. `moved_json` does both
for a file beside the configs.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

from vocabshift.errors import VocabMismatchError
from vocabshift.models.tables import VOCAB_KEYS, config_parts
from vocabshift.surgery.row_sources import RowSources
from vocabshift.surgery.special_ids import SpecialTokens

_ID_KEY = re.compile(r"(\w+?)_token_(?:id|ids|index)")
_ID_LISTS = ("suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "force_words_ids")
_ID_TABLES = ("lang_to_id", "task_to_id", "text_decoder_lang_to_code_id", "vocabulary_map")
"""Name -> id, of Whisper, SeamlessM4T, Chameleon and Emu3."""
_BIASES = "sequence_bias"
"""[[phrase, bias], …]: the biases are numbers and no ids."""
_SPLADE = ("embedding_dimension", "word_embedding_dimension")
_PLACED = "forced_decoder_ids"
"""[[position, id], …] of Whisper; an id may be null."""


@dataclass(frozen=True)
class Change:
    """One key of one config."""

    config: Any
    section: str  # "", "text_config" or "generation_config"
    key: str
    old: Any
    new: Any

    @property
    def role(self) -> str:
        """The key without its ending: "bos" for "bos_token_id"."""
        matched = _ID_KEY.fullmatch(self.key)
        return matched[1] if matched else self.key


def plan(model: Any, specials: SpecialTokens, sources: RowSources) -> list[Change]:
    """Every id that a config of the model holds, with what it becomes.

    An id that names no token (a default that nobody set) becomes the id of its role, or None.
    VocabMismatchError for the id of a token that the new tokenizer does not have.
    """
    known = set(sources.old_ids.tolist())

    def move(role: str, where: str, old_id: int) -> int | None:
        by_role = specials.by_role.get(role)
        if old_id < 0:
            return old_id  # -1 means "none" in some configs
        if old_id not in known:
            return by_role[1] if by_role else None
        if by_role and by_role[0] == old_id:
            return by_role[1]
        new_id = specials.old_to_new.get(old_id, sources.old_to_new.get(old_id))
        if new_id is None:
            raise VocabMismatchError(
                f"{where} is {old_id}, and the new tokenizer does not have that token; "
                "set it to a special token of the old tokenizer, or to None"
            )
        return new_id

    def ordinary(old_id: int) -> int | None:
        return specials.old_to_new.get(old_id, sources.old_to_new.get(old_id))

    changes = []
    for section, config in _configs(model):
        prefix = f"{section}." if section else ""
        for key, value in sorted(_plain(config).items()):
            if matched := _ID_KEY.fullmatch(key):
                role, where = matched[1], f"{prefix}{key}"
                new = _each(value, partial(move, role, where))
                if role in specials.given:
                    new = _with_given(new, specials.given[role])
            elif key in _MOVERS:
                new = _MOVERS[key](value, ordinary)
            else:
                continue
            changes.append(Change(config, section, key, value, new))
    named = {change.key for change in changes}
    for role, new_id in specials.given.items():
        if (key := f"{role}_token_id") not in named:
            changes.append(Change(model.config, "", key, None, new_id))
    return changes


def _with_given(value: Any, given: int) -> Any:
    """The value of a role's key once the role is given to a token: of a list, it is one more."""
    if not isinstance(value, list):
        return given
    return value if given in value else [given, *value]


def apply(model: Any, changes: list[Change], n_rows: int) -> None:
    """Write the planned ids and the new number of rows."""
    for change in changes:
        if change.new != change.old:
            setattr(change.config, change.key, change.new)
    for place, key in _sizes(model):
        setattr(place, key, n_rows)


def aimed_at(model: Any, changes: list[Change]) -> list[Change]:
    """The same changes for the configs of another model of the same kind."""
    configs = dict(_configs(model))
    return [replace(change, config=configs[change.section]) for change in changes]


def _sizes(model: Any) -> list[tuple[Any, str]]:
    """Where a model in memory says how many rows it has: (config or module, key)."""
    found: list[tuple[Any, str]] = []
    for key in VOCAB_KEYS:
        places = [part for part in config_parts(model.config) if key in vars(part)]
        sizes = {vars(part)[key] for part in places}
        for module in getattr(model, "modules", list)():
            if vars(module).get(key) in sizes:
                places.append(module)
        found += [(place, key) for place in places if isinstance(vars(place)[key], int)]
    return found


def text_path(config: Any) -> tuple[str, ...]:
    """Keys that lead from a config to its text part; empty where it is its own."""
    text = config.get_text_config()

    def search(part: Any, path: tuple[str, ...]) -> tuple[str, ...] | None:
        if part is text:
            return path
        for key, value in vars(part).items():
            if not key.startswith("_") and hasattr(value, "get_text_config"):
                found = search(value, (*path, key))
                if found is not None:
                    return found
        return None

    return search(config, ()) or ()


def moved_json(data: Any, move: Callable[[int], int | None], rows: tuple[int, int]) -> Any:
    """JSON of a processor with the ids in it moved; a single id that names no token stays.

    `rows`: old and new number, where the JSON says how many there are. SPLADE's pooling does.
    """
    if isinstance(data, list):
        return [moved_json(item, move, rows) for item in data]
    if not isinstance(data, dict):
        return data

    def follow(token_id: int) -> int:
        new = move(token_id)
        return token_id if new is None else new

    sizes = _SPLADE if "pooling_strategy" in data else VOCAB_KEYS

    def moved(key: str, value: Any) -> Any:
        if key in sizes and value == rows[0]:
            return rows[1]
        if _ID_KEY.fullmatch(key):
            return _each(value, follow)
        return _MOVERS[key](value, move) if key in _MOVERS else moved_json(value, move, rows)

    return {key: moved(key, value) for key, value in data.items()}


@contextmanager
def applied_for_now(model: Any, changes: list[Change], n_rows: int) -> Iterator[None]:
    """As `apply`, and afterwards everything as it was."""
    sizes = [(place, key, getattr(place, key)) for place, key in _sizes(model)]
    try:
        apply(model, changes, n_rows)
        yield
    finally:
        for place, key, size in sizes:
            setattr(place, key, size)
        for change in changes:
            if change.new != change.old:
                setattr(change.config, change.key, change.old)


def taken_over(model: Any, other: Any) -> list[Change]:
    """Every id that a config of the model or of `other` holds, as `other` has it."""
    theirs = dict(_configs(other))
    changes = []
    for section, config in _configs(model):
        source = theirs.get(section)
        if source is None:
            continue
        own, wanted = _plain(config), _plain(source)
        for key in sorted({*own, *wanted}):
            if _ID_KEY.fullmatch(key) or key in _MOVERS:
                changes.append(Change(config, section, key, own.get(key), wanted.get(key)))
    return changes


def moved_ids(changes: list[Change]) -> dict[str, list[Any]]:
    """Role (with its section, where it is not the main config) -> [old, new]; None left out."""
    return {
        f"{change.section}.{change.role}".lstrip("."): [change.old, change.new]
        for change in changes
        if change.old is not None
    }


def _configs(model: Any) -> Iterator[tuple[str, Any]]:
    for place, part in enumerate(config_parts(model.config)):
        yield ("text_config" if place else ""), part
    generation = getattr(model, "generation_config", None)
    if generation is not None:
        yield "generation_config", generation


def _plain(config: Any) -> Mapping[str, Any]:
    return {key: value for key, value in vars(config).items() if not key.startswith("_")}


def _each(value: Any, move: Callable[[int], int | None]) -> Any:
    """`value` with every id in it moved; of a list, ids that become None are left out.

    A list in a list is a phrase of several tokens, left out whole if one of them is, or a list of
    such phrases (`force_words_ids`).
    """
    if not isinstance(value, list | tuple):
        return _one(value, move)
    moved = [_phrase(item, move) if _is_phrase(item) else _each(item, move) for item in value]
    return [item for item in moved if item is not None] or (None if value else value)


def _is_phrase(item: Any) -> bool:
    return isinstance(item, list | tuple) and not any(isinstance(i, list | tuple) for i in item)


def _one(value: Any, move: Callable[[int], int | None]) -> Any:
    """A single id moved; what is no id, such as a text or a truth value, stays."""
    is_id = isinstance(value, Integral) and not isinstance(value, bool)
    return move(int(value)) if is_id else value


def _biases(value: Any, move: Callable[[int], int | None]) -> Any:
    """Phrases with their biases, a dict or a list; those that lose a token are left out."""
    if not value:
        return value
    pairs = value.items() if isinstance(value, dict) else value
    try:
        # JSON has texts as keys: index refuses their letters.
        moved = [(_phrase([*map(operator.index, ids)], move), bias) for ids, bias in pairs]
    except (TypeError, ValueError):
        raise ValueError(f"{_BIASES} is {value!r}; it must hold pairs of ids and bias") from None
    kept = [(ids, bias) for ids, bias in moved if ids is not None]
    if isinstance(value, dict):
        return {tuple(ids): bias for ids, bias in kept} or None
    return [[ids, bias] for ids, bias in kept] or None


def _placed(value: Any, move: Callable[[int], int | None]) -> Any:
    """Pairs of position and id; those whose token is gone are left out."""
    if not value:
        return value
    try:
        pairs = [(place, None if i is None else move(int(i)), i is None) for place, i in value]
    except (TypeError, ValueError):
        raise ValueError(f"{_PLACED} is {value!r}; it must hold pairs of place and id") from None
    return [[place, new] for place, new, is_open in pairs if is_open or new is not None] or None


def _table(value: Any, move: Callable[[int], int | None]) -> Any:
    """A dict of ids by name; those that are gone are left out."""
    if not isinstance(value, dict):
        return value
    moved = {name: _each(token_id, move) for name, token_id in value.items()}
    return {name: token_id for name, token_id in moved.items() if token_id is not None}


def _phrase(ids: list[int], move: Callable[[int], int | None]) -> list[int] | None:
    moved = [_one(token_id, move) for token_id in ids]
    kept = [token_id for token_id in moved if token_id is not None]
    return kept if len(kept) == len(ids) else None


_MOVERS: Mapping[str, Callable[[Any, Callable[[int], int | None]], Any]] = {
    **dict.fromkeys(_ID_LISTS, _each),
    **dict.fromkeys(_ID_TABLES, _table),
    _BIASES: _biases,
    _PLACED: _placed,
}
"""Key -> how the ids in its value are moved, of keys that `_ID_KEY` does not match."""
