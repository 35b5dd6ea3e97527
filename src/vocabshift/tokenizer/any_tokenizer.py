"""AnyTokenizer: the protocol of a tokenizer of any kind, and functions on it.

Owns the protocol that `Tokenizer` (BPE) and `UnigramOrWordPieceTokenizer` fulfil, and the form in
which ids of many texts are passed on: one flat array, and offsets. Imports neither class.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import regex_bound

if TYPE_CHECKING:
    import tokenizers

    from vocabshift.tokenizer.added_tokens import AddedToken
    from vocabshift.tokenizer.components import Spec
    from vocabshift.tokenizer.splits import Splits

Ids = NDArray[np.int32]
"""Ids of tokens, as encoders return them."""

Offsets = NDArray[np.int64]
"""Text i has the ids from offsets[i] to offsets[i + 1]; one more offset than there are texts."""

Buffer = bytes | bytearray | memoryview

_AT_ONCE = 1000
"""Texts that `tokenizers` encodes at once: it makes large objects of them."""


class AnyTokenizer(Protocol):
    """A frozen tokenizer of one of the three kinds; whatever changes it returns another one.

    Tokens are spelt as in `tokenizer.json`. The model's vocabulary (`vocab`) may or may not hold
    the added tokens; `row_count` counts both.
    """

    @property
    def name(self) -> str:
        """Last part of the path or Hub name it came from."""

    @property
    def kind(self) -> str:
        """ "BPE", "Unigram" or "WordPiece"."""

    @property
    def vocab(self) -> Mapping[str, int]:
        """Tokens of the model with their ids, which may have holes."""

    @property
    def vocab_size(self) -> int:
        """Tokens of the model; added tokens outside it are not counted."""

    @property
    def added_tokens(self) -> tuple[AddedToken, ...]:
        """Tokens that are cut out of a text before the model sees it."""

    @property
    def row_count(self) -> int:
        """Embedding rows a model needs: the highest id, added tokens included, plus one."""

    @property
    def unk_token(self) -> str | None:
        """The token for text that no other token can express, where there is one."""

    @property
    def continuing_prefix(self) -> str:
        """What a token inside a word begins with ("##" in WordPiece); usually nothing."""

    @property
    def scores(self) -> Mapping[int, float]:
        """Natural logarithm of each token's probability, by id; Unigram alone has scores."""

    @property
    def post_processor(self) -> Spec | None:
        """What puts special tokens around a text, as `tokenizer.json` spells it."""

    @property
    def config(self) -> Mapping[str, Any]:
        """`tokenizer_config.json`, as read."""

    @property
    def chat_template(self) -> str | None:
        """The Jinja template of a chat, where there is one."""

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits; equal for tokenizers that give texts the same ids in the same way."""

    @property
    def token_bytes(self) -> Mapping[int, bytes]:
        """The text bytes of each token that is not special, by id.

        "▁" and "Ġ" are a space, "##ing" is "ing", and a byte token is that byte.
        """

    @property
    def backend(self) -> tokenizers.Tokenizer:
        """The same tokenizer in the `tokenizers` library."""

    def encode_batch(
        self, texts: Sequence[str], *, threads: int = 1, parse_special: bool = True
    ) -> tuple[Ids, Offsets]:
        """Flat ids (int32) of the texts and offsets (n_texts + 1,), int64; no BOS or EOS.

        Strings of special tokens in a text are recognised, as `tokenizers` does;
        `parse_special=False` reads them as text. The result does not depend on `threads`; kinds
        other than BPE leave their number to `tokenizers`.
        """

    def encode_documents(
        self, data: Buffer, starts: NDArray[np.int64], ends: NDArray[np.int64], *, threads: int = 1
    ) -> tuple[Ids, Offsets]:
        """The same for UTF-8 bytes: document i is data[starts[i]:ends[i]]."""

    def decode_batch(self, ids: Ids, offsets: Offsets) -> list[str]:
        """The texts of flat ids and offsets, special tokens kept."""

    def without(self, ids: Iterable[int], *, keep_ids: bool = False) -> Self:
        """Return the tokenizer without the model's tokens `ids` and without their merges.

        The others are numbered densely in the old order, or keep their ids with `keep_ids`
        (`ids_without` returns the map). Raises ValueError for the id of an added token or of the
        unknown token.
        """

    def renumbered(self, old_to_new: Mapping[int, int]) -> Self:
        """The tokenizer of the tokens in `old_to_new` alone, which has every added token and the
        unknown token, with new ids; the ids in template and config follow."""

    def without_merge_skipping(self) -> Self:
        """The tokenizer whose merges alone decide; itself where they do so already."""

    def unreachable(self) -> tuple[str, ...]:
        """Return tokens that the model does not yield for their own text, by id."""

    def byte_pieces(self) -> tuple[str, ...]:
        """Tokens that represent one byte."""

    def missing_byte_pieces(self) -> tuple[str, ...]:
        """Tokens for single bytes that the model needs to express any text, and lacks."""

    def splits(self) -> Splits:
        """Of which two tokens each token is made, if of any."""

    def to_json(self) -> str:
        """The text of `tokenizer.json`."""

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write a folder, atomically; FileExistsError without `force`, or for weights and code."""


def ids_of_tokens(tokenizer: AnyTokenizer) -> set[int]:
    """Every id that names a token, those of added tokens included."""
    return {*tokenizer.vocab.values(), *(token.id for token in tokenizer.added_tokens)}


def tokens_by_id(tokenizer: AnyTokenizer) -> dict[int, str]:
    """Every token by id, ascending, as `tokenizer.json` spells it; added tokens included."""
    named = {token_id: token for token, token_id in tokenizer.vocab.items()}
    named |= {token.id: token.content for token in tokenizer.added_tokens}
    return dict(sorted(named.items()))


def ids_without(
    tokenizer: AnyTokenizer, removed: Iterable[int], *, keep_ids: bool = False
) -> dict[int, int]:
    """Return the new id of every id that is not `removed`: dense in the old order, or unchanged.

    Raises ValueError for the id of an added token or of the unknown token.
    """
    gone = set(removed)
    fixed = {token.id: token.content for token in tokenizer.added_tokens}
    unknown = tokenizer.unk_token
    if unknown is not None and unknown in tokenizer.vocab:
        fixed[tokenizer.vocab[unknown]] = unknown
    if refused := sorted(gone & fixed.keys()):
        raise ValueError(
            f"{fixed[refused[0]]!r} (id {refused[0]}) is an added token or the unknown token of "
            f"{tokenizer.name} and cannot be taken out"
        )
    staying = sorted(ids_of_tokens(tokenizer) - gone)
    return {old: old if keep_ids else place for place, old in enumerate(staying)}


def join(parts: Sequence[Ids]) -> tuple[Ids, Offsets]:
    """Flat ids and offsets (n_parts + 1,) of ids by text."""
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32), offsets


def join_batches(batches: Sequence[tuple[Ids, Offsets]]) -> tuple[Ids, Offsets]:
    """One batch of several, in order; a single one is handed on as it is."""
    if len(batches) == 1:
        return batches[0]
    ids, starts = join([ids for ids, _ in batches])
    ends = [offsets[1:] + start for (_, offsets), start in zip(batches, starts[:-1], strict=True)]
    return ids, np.concatenate([np.zeros(1, np.int64), *ends])


def surround(ids: Ids, offsets: Offsets, before: Ids, after: Ids) -> tuple[Ids, Offsets]:
    """The same texts, each between the ids `before` and `after`."""
    if not (len(before) or len(after)):
        return ids, offsets
    longer = offsets + np.arange(len(offsets)) * (len(before) + len(after))
    out = np.empty(longer[-1], dtype=np.int32)
    moved = longer[:-1] + len(before) - offsets[:-1]
    out[np.arange(len(ids)) + np.repeat(moved, np.diff(offsets))] = ids
    out[longer[:-1, None] + np.arange(len(before))] = before
    out[longer[1:, None] - np.arange(len(after), 0, -1)] = after
    return out, longer


def encode_flat(
    backend: tokenizers.Tokenizer, texts: Sequence[str], *, parse_special: bool
) -> tuple[Ids, Offsets]:
    """Flat ids and offsets (n_texts + 1,) of texts, as `tokenizers` encodes them."""
    rows = []
    with special_tokens_as(backend, parse_special=parse_special):
        for at in range(0, len(texts), _AT_ONCE):
            some = list(texts[at : at + _AT_ONCE])
            with regex_bound():
                found = backend.encode_batch_fast(some, add_special_tokens=False)
            rows += [np.array(encoding.ids, dtype=np.int32) for encoding in found]
    return join(rows)


def decode_flat(backend: tokenizers.Tokenizer, ids: Ids, offsets: Offsets) -> list[str]:
    """The texts of flat ids and offsets, special tokens kept."""
    rows = [ids[start:end].tolist() for start, end in itertools.pairwise(offsets.tolist())]
    with regex_bound():  # a decoder may replace by regex
        return list(backend.decode_batch(rows, skip_special_tokens=False))


@contextmanager
def special_tokens_as(
    backend: tokenizers.Tokenizer, *, parse_special: bool
) -> Iterator[tokenizers.Tokenizer]:
    """The backend, set to recognise strings of special tokens or not until the block ends."""
    before = backend.encode_special_tokens
    backend.encode_special_tokens = not parse_special
    try:
        yield backend
    finally:
        backend.encode_special_tokens = before


def own_probes(tokenizer: AnyTokenizer, *, n_tokens: int = 400) -> Iterator[str]:
    """Text in the tokenizer's own languages: that of its tokens, picked at even distances."""
    texts = [data for _, data in sorted(tokenizer.token_bytes.items())]
    step = max(1, len(texts) // n_tokens)
    words = [data.decode(errors="ignore") for data in texts[::step]]
    for start in range(0, len(words), 50):
        yield " ".join(words[start : start + 50])
