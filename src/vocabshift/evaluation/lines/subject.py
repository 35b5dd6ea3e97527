"""The subject of an evaluation: a tokenizer of any kind with tables by id, under a unique name.

Owns joining the bytes of a text's tokens fast, and the naming rule of the contract: a subject's
name is the last part of its path or Hub name. Names that clash are prefixed with their parent
folder ("runs/ist"); those that still clash get a number ("ist (2)"). Knows nothing of lines,
languages or metrics.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vocabshift.tokenizer.any_tokenizer import (
    AnyTokenizer,
    Ids,
    Offsets,
    special_tokens_as,
    tokens_by_id,
)
from vocabshift.tokenizer.formats.load import open_tokenizer

if TYPE_CHECKING:
    import tokenizers

_JOINED_AT_ONCE = 1 << 20
"""Tokens whose bytes are gathered together: each byte takes three numbers of eight meanwhile."""


class Engine:
    """A tokenizer of any kind with tables by id, made once for many texts; see `engine_of`."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self.tokenizer = tokenizer

    @property
    def name(self) -> str:
        """Last part of the path or Hub name it came from."""
        return self.tokenizer.name

    @property
    def kind(self) -> str:
        """ "BPE", "Unigram" or "WordPiece"."""
        return self.tokenizer.kind

    @property
    def row_count(self) -> int:
        """The highest id plus one."""
        return self.tokenizer.row_count

    def encode_batch(
        self, lines: Sequence[str], *, threads: int = 1, parse_special: bool = True
    ) -> tuple[Ids, Offsets]:
        """As `AnyTokenizer.encode_batch`."""
        return self.tokenizer.encode_batch(lines, threads=threads, parse_special=parse_special)

    def backend(self, *, parse_special: bool) -> AbstractContextManager[tokenizers.Tokenizer]:
        """The tokenizer in `tokenizers`, set to read special-token strings or not, for a while."""
        return special_tokens_as(self.tokenizer.backend, parse_special=parse_special)

    def decode_batch(self, ids: Ids, offsets: Offsets) -> list[str]:
        """As `AnyTokenizer.decode_batch`."""
        return self.tokenizer.decode_batch(ids, offsets)

    @property
    def token_bytes(self) -> Mapping[int, bytes]:
        """As `AnyTokenizer.token_bytes`."""
        return self.tokenizer.token_bytes

    @cached_property
    def tokens(self) -> Mapping[int, str]:
        """Every token by id, ascending, as `tokenizer.json` spells it; added tokens included."""
        return tokens_by_id(self.tokenizer)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of special tokens."""
        return frozenset(token.id for token in self.tokenizer.added_tokens if token.special)

    @cached_property
    def unknown_id(self) -> int | None:
        """The id that stands for text without a token, where there is one."""
        unknown = self.tokenizer.unk_token
        return None if unknown is None else self.tokenizer.vocab.get(unknown)

    @cached_property
    def spelled(self) -> list[bytes]:
        """Bytes of each id in text, (row_count,): special tokens as they are written, "" for ids
        without a token."""
        table = [b""] * self.row_count
        for token_id, data in self.token_bytes.items():
            table[token_id] = data
        for token in self.tokenizer.added_tokens:
            table[token.id] = token.content.encode()
        return table

    @cached_property
    def byte_counts(self) -> npt.NDArray[np.int64]:
        """Bytes of each id in text, (row_count,)."""
        return np.fromiter(map(len, self.spelled), np.int64, len(self.spelled))

    @cached_property
    def byte_starts(self) -> npt.NDArray[np.int64]:
        """Where the bytes of each id begin in `all_bytes`, (row_count,)."""
        return np.cumsum(self.byte_counts) - self.byte_counts

    @cached_property
    def all_bytes(self) -> npt.NDArray[np.uint8]:
        """The bytes of all ids, one after the other."""
        return np.frombuffer(b"".join(self.spelled), dtype=np.uint8)

    def join(self, ids: Ids) -> bytes:
        """The bytes of these tokens, one after the other."""
        blocks = (ids[at : at + _JOINED_AT_ONCE] for at in range(0, len(ids), _JOINED_AT_ONCE))
        return b"".join(map(self._join_block, blocks))

    def _join_block(self, ids: Ids) -> bytes:
        lengths = self.byte_counts[ids]
        before = np.cumsum(lengths) - lengths
        at = np.repeat(self.byte_starts[ids] - before, lengths)
        at += np.arange(len(at))
        return bytes(self.all_bytes[at].tobytes())


def engine_of(tokenizer: Any) -> Engine:
    """The engine of a tokenizer: ours, of `tokenizers`, a fast one of transformers, or a path.

    InvalidTokenizerError for a model that is neither BPE nor Unigram nor WordPiece.
    """
    return tokenizer if isinstance(tokenizer, Engine) else Engine(open_tokenizer(tokenizer))


_TIKTOKEN = "tiktoken:"  # as `tokenizer.formats.tiktoken` names an encoding


@dataclass(frozen=True, slots=True)
class Subject:
    """One tokenizer under the name that its results carry."""

    name: str
    tokenizer: AnyTokenizer


def subjects(tokenizers: Any) -> list[Subject]:
    """The tokenizers to evaluate, loaded and named.

    `tokenizers` is one tokenizer or a list or tuple of them, each a `Tokenizer`, a transformers
    fast tokenizer, a `tokenizers.Tokenizer`, a `tiktoken.Encoding`, a path, a Hub name or
    "tiktoken:NAME"; or a mapping of names to these. BPE, Unigram and WordPiece. Raises ValueError
    where there is none, and what loading raises.
    """
    if isinstance(tokenizers, Mapping):
        named = [(str(name), source) for name, source in tokenizers.items()]
    else:
        sources = list(tokenizers) if isinstance(tokenizers, list | tuple) else [tokenizers]
        named = list(zip(subject_names(sources), sources, strict=True))
    if not named:
        raise ValueError("no tokenizer is given; name at least one to evaluate")
    return [Subject(name, open_tokenizer(source)) for name, source in named]


def subject_names(sources: Sequence[Any]) -> list[str]:
    """Return the names that `subjects` would use for tokenizers, without loading any."""
    return unique_names([_path_parts(source) for source in sources])


def unique_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """One name for each path (its parts, root first), by the rule at the head of this file."""
    last = Counter(parts[-1] for parts in paths)
    given = ["/".join(parts[-2:]) if last[parts[-1]] > 1 else parts[-1] for parts in paths]
    # A file's name need not be UTF-8, but the name in the results must be.
    names = [name.encode("utf-8", "backslashreplace").decode() for name in given]
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def _path_parts(source: Any) -> tuple[str, ...]:
    """Parts of the path or Hub name that a tokenizer came from; never empty."""
    if isinstance(source, str) and source.startswith(_TIKTOKEN):
        return (source.removeprefix(_TIKTOKEN),)
    if isinstance(source, str | Path):
        if Path(source).exists():
            source = os.path.abspath(source)  # noqa: PTH100 - resolve() would follow links
        return Path(source).parts[-2:] or ("tokenizer",)
    own = getattr(source, "name_or_path", "") or getattr(source, "name", "")  # ours and tiktoken's
    return Path(str(own or "tokenizer")).parts[-2:] or ("tokenizer",)
