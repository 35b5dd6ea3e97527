"""The strings of a BPE model in the core's form: looked up once, for the check and the encoder.

Owns what the core reads: of a vocabulary and its merges, and of the bytes of a `tokenizer.json`,
where half a million strings would otherwise be made to be looked up. Does not know what is wrong
with what the core will not take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from vocabshift import _core

Strings = _core.ModelStrings

_kept: WeakKeyDictionary[Any, Strings] = WeakKeyDictionary()


def read_strings(
    vocab: Mapping[str, int], merges: tuple[tuple[str, str], ...], max_id: int
) -> Strings | None:
    """None where they contradict themselves or each other, or hold half a surrogate pair."""
    try:
        return Strings.of(vocab if isinstance(vocab, dict) else dict(vocab), merges, max_id)
    except UnicodeEncodeError:
        return None


def read_json(
    data: bytes, max_id: int
) -> tuple[dict[str, int], tuple[tuple[str, str], ...], Strings, bytes] | None:
    """(vocab, merges, strings, rest) of a `tokenizer.json`, the rest with null for the first two.

    The whole is JSON exactly if the rest is. None where a general reader must look at it.
    """
    return _core.read_model(data, max_id)


def keep(model: Any, strings: Strings) -> None:
    """Keep a model's strings until they are taken; beside it, for it is pickled without them."""
    _kept[model] = strings


def take(model: Any) -> Strings | None:
    """The strings that were kept of a model; once."""
    return _kept.pop(model, None)
