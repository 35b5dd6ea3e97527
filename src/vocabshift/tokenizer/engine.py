"""Engine: a tokenizer of any kind with tables by id, made once for many texts.

Owns the bytes of each id in text, and joining the bytes of a text's tokens fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vocabshift.tokenizer.any_tokenizer import (
    AnyTokenizer,
    Ids,
    Offsets,
    special_tokens_as,
    tokens_by_id,
)

if TYPE_CHECKING:
    import tokenizers

_JOINED_AT_ONCE = 1 << 20
"""Tokens whose bytes are gathered together: each byte takes three numbers of eight meanwhile."""


class Engine:
    """A tokenizer of any kind with tables by id, made once for many texts."""

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
    def byte_bounds(self) -> npt.NDArray[np.int64]:
        """Where the bytes of each id begin in `all_bytes`, and their end, (row_count + 1,)."""
        return np.append(0, np.cumsum(self.byte_counts))

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
        at = np.repeat(self.byte_bounds[ids] - before, lengths)
        at += np.arange(len(at))
        return bytes(self.all_bytes[at].tobytes())
