"""A BPE model in the core's form: ids and byte strings instead of vocabulary strings."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.bpe import byte_level as image
from vocabshift.bpe import model_strings
from vocabshift.bpe.model import MAX_ID, BpeModel

_compiled: WeakKeyDictionary[BpeModel, dict[bool, _core.Encoder]] = WeakKeyDictionary()


def compile_model(model: BpeModel, *, byte_level: bool) -> _core.Encoder:
    """The core's encoder for a model; `byte_level`: pieces reach it as text, not as images.

    Made once: models are frozen, and tokenizers that differ in other parts share theirs.
    """
    found = _compiled.setdefault(model, {})
    if byte_level not in found:
        found[byte_level] = _compile(model, byte_level=byte_level)
    return found[byte_level]


def _compile(model: BpeModel, *, byte_level: bool) -> _core.Encoder:
    vocab = model.vocab
    space = " " if byte_level else "▁" if "▁" in vocab else "Ġ" if "Ġ" in vocab else " "
    strings = model_strings.take(model) or model_strings.read_strings(vocab, model.merges, MAX_ID)
    if strings is None:  # of a model that was not checked
        raise ValueError("a merge names an unknown token, or a token is no text")
    return strings.compile(
        byte_level=byte_level,
        ignore_merges=model.ignore_merges,
        byte_fallback=model.byte_fallback,
        # Subtle: of a byte-level model it may be an added token only, and is never met.
        unk=None if model.unk_token is None else vocab.get(model.unk_token),
        fuse_unk=model.fuse_unk,
        space=space,
    )


def compile_merges(tokens: list[bytes], merges: NDArray[np.uint32]) -> _core.Encoder:
    """The core's encoder for merges that are just learned: `tokens` by id, merges (n, 3) ids."""
    return _core.Encoder(tokens, np.arange(len(tokens), dtype=np.uint32), merges)


def image_bytes(token: str) -> bytes:
    """Bytes of a byte-level token; a string that no bytes spell is never found: 0xFF…"""
    try:
        return image.to_bytes(token)
    except KeyError:
        return b"\xff" + token.encode()


def images_bytes(tokens: Sequence[str]) -> list[bytes]:
    """`image_bytes` of many tokens, fast where all are images."""
    try:
        return image.all_to_bytes(tokens)
    except KeyError:
        return [image_bytes(token) for token in tokens]
