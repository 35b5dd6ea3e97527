"""Tokenizer: the checked, frozen value that every workshop takes and returns.

Owns the pieces of a tokenizer (model, normalizer, pre-tokenizer, special tokens, template) and
the way to `tokenizers` and to disk. Only `tokenizer_json` knows how these are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.sentencepiece_rules import SentencePieceRules

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
        from vocabshift.bpe import tokenizer_json

        return tokenizer_json.to_backend(self)

    def to_hf(self) -> Any:
        """A transformers fast tokenizer (needs the [hf] extra)."""
        from vocabshift.bpe import tokenizer_json

        return tokenizer_json.to_hf(self)

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write a Hugging Face folder, atomically; FileExistsError without `force`."""
        from vocabshift.bpe import pretrained_folder

        return pretrained_folder.save_pretrained(self, folder, force=force)

    @property
    def vocab_size(self) -> int:
        """Tokens of the model, special tokens outside it not counted."""
        return len(self.model.vocab)

    @cached_property
    def row_count(self) -> int:
        """Embedding rows a model needs: the highest id, added tokens included, plus one."""
        return max([self.model.size, *(token.id + 1 for token in self.added_tokens)])
