"""Tokenizer: the checked, frozen value that every workshop takes and returns.

Owns the pieces of a tokenizer (model, normalizer, pre-tokenizer, special tokens, template) and
the way to `tokenizers` and to disk. Only `tokenizer_json` knows how these are written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.sentencepiece_proto import SentencePieceRules
from vocabshift.tokenizer.model import MAX_ID, BpeModel

if TYPE_CHECKING:
    import tokenizers

Spec = Mapping[str, Any]
"""A component as `tokenizer.json` spells it, for example {"type": "NFC"}."""


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is cut out of the text before the model sees it."""

    content: str
    id: int
    special: bool = True
    normalized: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """A BPE tokenizer and everything around its model; frozen: surgery returns a new one."""

    model: BpeModel
    normalizer: Spec | None = None
    pre_tokenizer: Spec | None = None
    post_processor: Spec | None = None
    decoder: Spec | None = None
    added_tokens: tuple[AddedToken, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)  # tokenizer_config.json, as read
    chat_template: str | None = None
    name: str = "tokenizer"  # last part of the path or Hub name it came from
    piece_rules: SentencePieceRules | None = None  # of the SentencePiece model beside it, if any

    @cached_property
    def backend(self) -> tokenizers.Tokenizer:
        """The same tokenizer in the `tokenizers` library."""
        from vocabshift.tokenizer import tokenizer_json

        return tokenizer_json.to_backend(self)

    def to_hf(self) -> Any:
        """A transformers fast tokenizer (needs the [hf] extra)."""
        from vocabshift.tokenizer import tokenizer_json

        return tokenizer_json.to_hf(self)

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write a Hugging Face folder, atomically; FileExistsError without `force`."""
        from vocabshift.tokenizer import pretrained_folder

        return pretrained_folder.save_pretrained(self, folder, force=force)

    @property
    def vocab_size(self) -> int:
        """Tokens of the model, special tokens outside it not counted."""
        return len(self.model.vocab)

    @cached_property
    def row_count(self) -> int:
        """Embedding rows a model needs: the highest id, added tokens included, plus one."""
        return max([self.model.size, *(token.id + 1 for token in self.added_tokens)])


# Which id does an added token get? The rule of `tokenizers`, and what contradicts it.
#
# Trap: `tokenizers` ignores the id that `tokenizer.json` states for an added token; a token outside
# `model.vocab` is numbered anew at load. Found with 0.22 and 0.23; held by a property test.


def ids_at_load(added: Iterable[AddedToken], vocab: Mapping[str, int]) -> list[int]:
    """The id that `tokenizers` gives each added token when it reads them in this order.

    A token of the vocabulary has its id there; the others are numbered from the vocabulary's
    count (not its highest id) on, whatever id the file states.
    """
    free = itertools.count(len(vocab))
    return [next(free) if (known := vocab.get(token.content)) is None else known for token in added]


def vocab_with(vocab: dict[str, int], added: Iterable[AddedToken]) -> dict[str, int]:
    """The vocabulary with every added token written into it, by id."""
    whole = {**vocab, **{token.content: token.id for token in added}}
    return dict(sorted(whole.items(), key=lambda entry: entry[1]))


def check_added(added: Iterable[AddedToken], model: BpeModel) -> None:
    """InvalidTokenizerError where two tokens would share a text or an id."""
    contents: set[str] = set()
    owners: dict[int, str] = {}
    for token in added:
        if token.content in contents or token.id in owners:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} (id {token.id}) shares its text or its id "
                "with another added token"
            )
        contents.add(token.content)
        owners[token.id] = token.content
        known = model.vocab.get(token.content, token.id)
        # The table of all tokens by id takes its time: most added tokens need no look at it.
        is_free = token.id >= model.size or model.vocab.get(token.content) == token.id
        owner = token.content if is_free else model.tokens.get(token.id, token.content)
        if owner != token.content or known != token.id or not 0 <= token.id <= MAX_ID:
            raise InvalidTokenizerError(
                f"the added token {token.content!r} cannot have id {token.id}: "
                + (
                    f"that is {owner!r}"
                    if owner != token.content
                    else f"the vocabulary says {known}"
                )
            )
