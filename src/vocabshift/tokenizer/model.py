"""BpeModel: a vocabulary and its merges, checked once, then trusted; and its form in the core.

Owns the definition of a BPE model and the contradictions that are refused. The core looks up its
strings once, for the check and for the encoder. Of those of a `tokenizer.json`, which it reads
itself, half a million Python strings are made only when someone asks.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import byte_level as images

Merge = tuple[str, str]

MAX_ID = 2**24 - 1
"""Highest id that is believed: tables are as long as the highest id, and a damaged file must not
ask for gigabytes. The largest vocabularies in use have some 300 thousand tokens."""

Strings = _core.ModelStrings


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Without the garbage collector, which would walk all tokens and merges many times."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_strings(
    vocab: Mapping[str, int], merges: tuple[tuple[str, str], ...], max_id: int
) -> Strings | None:
    """None where they contradict themselves or each other, or hold half a surrogate pair."""
    try:
        return Strings.of(vocab if isinstance(vocab, dict) else dict(vocab), merges, max_id)
    except UnicodeEncodeError:
        return None


def read_json(data: bytes, max_id: int) -> tuple[Strings, bytes] | None:
    """(strings, rest) of a `tokenizer.json`, the rest with null for vocabulary and merges.

    The whole is JSON exactly if the rest is. None where a general reader must look at it.
    """
    return _core.read_model(data, max_id)


@dataclass(frozen=True, eq=False)
class BpeModel:
    """A BPE vocabulary, as `tokenizers`' BPE model reads it.

    Token strings are those of `tokenizer.json`: in the byte-level image for byte-level models,
    with "▁" for the space and "<0xNN>" byte pieces for SentencePiece models.
    """

    vocab: Mapping[str, int]  # token -> id; ids may have holes
    merges: tuple[Merge, ...]  # by rank; a pair listed twice has its later rank
    ignore_merges: bool = False  # merge skipping: a whole piece in the vocabulary is one token
    byte_fallback: bool = False  # unknown characters become "<0xNN>" pieces
    unk_token: str | None = None
    fuse_unk: bool = False
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None

    def __post_init__(self) -> None:
        if self.continuing_subword_prefix:
            self._check_ids()
            self._check_merges()
        else:
            self._check_strings()
        self._check_unknown()

    @classmethod
    def of_strings(cls, strings: Strings, **options: Any) -> BpeModel:
        """The model of strings that the core has read; `options`: the other fields.

        `vocab` and `merges` are made of them when they are first asked for.
        """
        if options.get("continuing_subword_prefix"):
            with no_collection():
                vocab = strings.vocab()
                return cls(vocab, strings.pairs(vocab), **options)
        model = object.__new__(cls)
        for field in fields(cls)[2:]:
            object.__setattr__(model, field.name, options.pop(field.name, field.default))
        if options:
            raise TypeError(f"a BpeModel has no {', '.join(options)}")
        object.__setattr__(model, "_strings", strings)
        model._check_unknown()
        return model

    def extended(
        self, vocab: Mapping[str, int], merges: Sequence[Merge], *, merges_first: bool = False
    ) -> BpeModel:
        """Return the model with more tokens, and more merges after its own or before them.

        InvalidTokenizerError for merges of what is no token, or for ids that are taken."""
        if not self.continuing_subword_prefix:
            strings = self.strings.extended(
                dict(vocab), merges, merges_first=merges_first, max_id=MAX_ID
            )
            if strings is not None:
                options = {field.name: getattr(self, field.name) for field in fields(self)[2:]}
                return BpeModel.of_strings(strings, **options)
        whole = {**self.vocab, **vocab}
        BpeModel(whole, tuple(merges))  # says what is wrong; the old merges are known to fit
        both = (*merges, *self.merges) if merges_first else (*self.merges, *merges)
        return self.unchecked(vocab=whole, merges=both)

    def unchecked(self, **changes: Any) -> BpeModel:
        """A copy with other fields that is not checked again: the caller knows it to be sound.

        Beside `of_strings` the one way to a model that passes by the check of the constructor.
        """
        model = object.__new__(BpeModel)
        if not {"vocab", "merges"} & changes.keys() and "_strings" in self.__dict__:
            object.__setattr__(model, "_strings", self.__dict__["_strings"])
        for field in fields(self):
            if field.name in changes:
                object.__setattr__(model, field.name, changes.pop(field.name))
            elif field.name in self.__dict__ or "_strings" not in model.__dict__:
                object.__setattr__(model, field.name, getattr(self, field.name))
        if changes:
            raise TypeError(f"a BpeModel has no {', '.join(changes)}")
        return model

    if not TYPE_CHECKING:  # a checker would take it for every name

        def __getattr__(self, name: str) -> Any:
            """`vocab` and `merges` of a model whose strings the core has read."""
            strings = self.__dict__.get("_strings")
            if strings is None or name not in ("vocab", "merges"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            with no_collection():
                value = strings.vocab() if name == "vocab" else strings.pairs(self.vocab)
            object.__setattr__(self, name, value)
            return value

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what was computed from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _check_unknown(self) -> None:
        # Subtle: a byte-level model never meets an unknown character, and several vendors name
        # an unk_token there that is an added token only.
        unk = self.unk_token
        if unk is not None and self.token_id(unk) is None and not self.is_byte_level:
            raise InvalidTokenizerError(f"unk_token {unk!r} is not in the vocabulary")

    def _check_strings(self) -> None:
        strings = read_strings(self.vocab, self.merges, MAX_ID)
        if strings is not None:
            object.__setattr__(self, "_strings", strings)
            return
        self._check_ids()
        self._check_merges()
        raise InvalidTokenizerError("a token holds half a surrogate pair, which is no text")

    def _check_ids(self) -> None:
        ids = set(self.vocab.values())
        if len(ids) != len(self.vocab):
            raise InvalidTokenizerError(
                f"the vocabulary gives {len(self.vocab)} tokens only {len(ids)} distinct ids; "
                "every token needs an id of its own"
            )
        if ids and min(ids) < 0:
            raise InvalidTokenizerError(f"the vocabulary holds the negative id {min(ids)}")
        if ids and max(ids) > MAX_ID:
            raise InvalidTokenizerError(
                f"the vocabulary holds the id {max(ids)}, above the highest possible, {MAX_ID}"
            )

    def _check_merges(self) -> None:
        for rank, (left, right) in enumerate(self.merges):
            for part in (left, right, self.product(left, right)):
                if part is None:
                    raise InvalidTokenizerError(
                        f"merge {rank} joins {left!r} and {right!r}, but the right part lacks the "
                        f"continuing_subword_prefix {self.continuing_subword_prefix!r}"
                    )
                if part not in self.vocab:
                    raise InvalidTokenizerError(
                        f"merge {rank} joins {left!r} and {right!r}, "
                        f"but {part!r} is not in the vocabulary"
                    )

    def product(self, left: str, right: str) -> str | None:
        """The token that a merge makes; None where `right` lacks the continuing prefix."""
        prefix = self.continuing_subword_prefix
        if not prefix:
            return left + right
        return left + right[len(prefix) :] if right.startswith(prefix) else None

    @cached_property
    def is_byte_level(self) -> bool:
        """Whether all 256 byte images are tokens (then no text can be lost)."""
        return all(self.token_id(image) is not None for image in images.ALPHABET)

    def token_id(self, token: str) -> int | None:
        """The id of a token; None for what is no token. No Python strings are made for it."""
        if "vocab" in self.__dict__:
            return self.vocab.get(token)
        try:
            return self.strings.find(token)
        except UnicodeEncodeError:  # half a surrogate pair is no text
            return None

    @property
    def n_tokens(self) -> int:
        """Tokens of the vocabulary."""
        return len(self.vocab if "vocab" in self.__dict__ else self.strings)

    @property
    def strings(self) -> Strings:
        """Its tokens and merges in the core; ValueError where they contradict each other."""
        kept: Strings | None = self.__dict__.get("_strings")
        strings = kept or read_strings(self.vocab, self.merges, MAX_ID)
        if strings is None:  # of a model that was not checked
            raise ValueError("a merge names an unknown token, or a token is no text")
        return strings

    @cached_property
    def tokens(self) -> dict[int, str]:
        """id -> token."""
        return {token_id: token for token, token_id in self.vocab.items()}

    @cached_property
    def size(self) -> int:
        """Rows needed for the vocabulary: the highest id plus one."""
        if "vocab" in self.__dict__:
            return max(self.vocab.values(), default=-1) + 1
        return self.strings.highest_id + 1


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
    marks = () if byte_level else ("▁", "Ġ")
    space = next((mark for mark in marks if model.token_id(mark) is not None), " ")
    strings = model.strings
    if {"vocab", "merges"} <= model.__dict__.keys():  # nobody asks them again
        model.__dict__.pop("_strings", None)
    return strings.compile(
        byte_level=byte_level,
        ignore_merges=model.ignore_merges,
        byte_fallback=model.byte_fallback,
        # Subtle: of a byte-level model it may be an added token only, and is never met.
        unk=None if model.unk_token is None else model.token_id(model.unk_token),
        fuse_unk=model.fuse_unk,
        space=space,
    )


def compile_merges(tokens: list[bytes], merges: NDArray[np.uint32]) -> _core.Encoder:
    """The core's encoder for merges that are just learned: `tokens` by id, merges (n, 3) ids."""
    return _core.Encoder(tokens, np.arange(len(tokens), dtype=np.uint32), merges)


def image_bytes(token: str) -> bytes:
    """Bytes of a byte-level token; a string that no bytes spell is never found: 0xFF…"""
    try:
        return images.to_bytes(token)
    except KeyError:
        return b"\xff" + token.encode()


def images_bytes(tokens: Sequence[str]) -> list[bytes]:
    """`image_bytes` of many tokens, fast where all are images."""
    try:
        return images.all_to_bytes(tokens)
    except KeyError:
        return [image_bytes(token) for token in tokens]
