"""Tokenizer: a BPE tokenizer as a checked, frozen value, which the whole package passes around.

Owns the parts that `tokenizer.json` does not hold (config, chat template, name), and AnyTokenizer's
methods for BPE. `pipeline` encodes; `tokenizer_json` and `pretrained_folder` write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vocabshift.tokenizer import pretrained_folder, tokenizer_json
from vocabshift.tokenizer.added_tokens import role_text
from vocabshift.tokenizer.any_tokenizer import Buffer, Ids, Offsets, decode_flat, ids_without
from vocabshift.tokenizer.components import SentencePieceRules, with_ids
from vocabshift.tokenizer.pipeline import Pipeline
from vocabshift.tokenizer.splits import Splits, split_tokens, unreachable_tokens
from vocabshift.tokenizer.token_bytes import (
    byte_pieces,
    missing_byte_pieces,
    plain_or_image,
    token_bytes,
)
from vocabshift.tokenizer.tokenizer_json import TokenizerParts


@dataclass(frozen=True, eq=False)
class Tokenizer(TokenizerParts):
    """A BPE tokenizer and everything around its model; frozen: surgery returns a new one.

    Fulfils `AnyTokenizer`, where the members without a docstring are described.
    """

    config: Mapping[str, Any] = field(default_factory=dict)  # tokenizer_config.json, as read
    chat_template: str | None = None  # Jinja
    name: str = "tokenizer"  # last part of the path or Hub name it came from
    piece_rules: SentencePieceRules | None = None  # of the SentencePiece model beside it, if any

    @classmethod
    def from_json(
        cls, source: str | bytes | Mapping[str, Any], *, name: str = "tokenizer"
    ) -> Tokenizer:
        """The tokenizer of a `tokenizer.json`, given as its text or its parsed object.

        InvalidTokenizerError for anything that is not a sound BPE tokenizer.
        """
        return cls(**vars(tokenizer_json.read(source)), name=name)

    def to_json(self) -> str:
        """The text of `tokenizer.json`."""
        return tokenizer_json.to_json(self)

    def to_hf(self) -> Any:
        """A transformers fast tokenizer (needs the [hf] extra)."""
        backend = tokenizer_json.backend_of(self.to_json())  # not the cached one: it is changed
        return pretrained_folder.to_fast(backend, self.config, self.chat_template)

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write a folder, atomically; FileExistsError without `force`, or for weights and code."""
        return pretrained_folder.save_pretrained(self, folder, force=force)

    @property
    def kind(self) -> str:
        """Always "BPE"."""
        return "BPE"

    @property
    def vocab(self) -> Mapping[str, int]:
        """Tokens of the model with their ids, which may have holes."""
        return self.model.vocab

    @property
    def vocab_size(self) -> int:
        """Tokens of the model, special tokens outside it not counted."""
        return self.model.n_tokens

    @cached_property
    def row_count(self) -> int:
        """Embedding rows a model needs: the highest id, added tokens included, plus one."""
        return max([self.model.size, *(token.id + 1 for token in self.added_tokens)])

    @property
    def unk_token(self) -> str | None:
        """The token for text that no other token can express, where there is one."""
        return self.model.unk_token

    @property
    def eos_token(self) -> str | None:
        """The EOS that its config names, if that is one of its tokens."""
        text = role_text(self.config, "eos")
        return text if text is not None and self.token_id(text) is not None else None

    def token_id(self, text: str) -> int | None:
        """Id of an added token or a token of the vocabulary; None if there is none."""
        added = {token.content: token.id for token in self.added_tokens}
        return added[text] if text in added else self.model.token_id(text)

    @property
    def continuing_prefix(self) -> str:
        """What a token inside a word begins with; nothing in all but a few old models."""
        return self.model.continuing_subword_prefix or ""

    @property
    def scores(self) -> Mapping[int, float]:
        """Nothing: merges have ranks."""
        return {}

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits; equal for tokenizers that give texts the same ids in the same way."""
        return tokenizer_json.fingerprint(self)

    @cached_property
    def token_bytes(self) -> Mapping[int, bytes]:
        """The text bytes of each token that is not special, by id."""
        return token_bytes(self)

    @cached_property
    def _pipeline(self) -> Pipeline:
        return Pipeline(self, parse_special=True)

    @cached_property
    def _pipeline_of_text(self) -> Pipeline:
        return self._pipeline.without_special()

    def encode_batch(
        self, texts: Sequence[str], *, threads: int = 1, parse_special: bool = True
    ) -> tuple[Ids, Offsets]:
        """Flat ids (int32) of the texts and offsets (n_texts + 1,), int64; no BOS or EOS."""
        pipeline = self._pipeline if parse_special else self._pipeline_of_text
        return pipeline.encode_batch(texts if isinstance(texts, list) else list(texts), threads)

    def encode_documents(
        self, data: Buffer, starts: NDArray[np.int64], ends: NDArray[np.int64], *, threads: int = 1
    ) -> tuple[Ids, Offsets]:
        """The same for UTF-8 bytes: document i is data[starts[i]:ends[i]]."""
        return self._pipeline.encode_documents(data, starts, ends, threads)

    def decode_batch(self, ids: Ids, offsets: Offsets) -> list[str]:
        """The texts of flat ids and offsets, special tokens kept."""
        decoder = self.decoder or {}
        if decoder.get("type") != "ByteLevel" or self.model.byte_fallback:
            return decode_flat(self.backend, ids, offsets)
        rows = [ids[start:end].tolist() for start, end in pairwise(offsets.tolist())]
        pieces = self._decoded
        joined = (b"".join([pieces.get(token_id, b"") for token_id in row]) for row in rows)
        return [data.decode(errors="replace") for data in joined]

    @cached_property
    def _decoded(self) -> Mapping[int, bytes]:
        """What ByteLevel makes of each token; it takes added tokens for images of bytes too."""
        added = {token.id: plain_or_image(token.content) for token in self.added_tokens}
        return {**self.token_bytes, **added}

    def without(self, ids: Iterable[int], *, keep_ids: bool = False) -> Self:
        """Return the tokenizer without these tokens and without merges that use or make them."""
        return self.renumbered(ids_without(self, ids, keep_ids=keep_ids))

    def renumbered(self, old_to_new: Mapping[int, int]) -> Self:
        """Return the tokenizer with only the tokens in `old_to_new`, with new ids."""
        model = self.model
        vocab = {
            token: old_to_new[token_id]
            for token, token_id in sorted(model.vocab.items(), key=lambda entry: entry[1])
            if token_id in old_to_new
        }
        gone = model.vocab.keys() - vocab.keys()
        merges = tuple(
            merge
            for merge in model.merges
            if merge[0] not in gone and merge[1] not in gone and model.product(*merge) not in gone
        )
        return replace(
            self,
            model=replace(model, vocab=vocab, merges=merges),
            added_tokens=tuple(
                replace(token, id=old_to_new[token.id]) for token in self.added_tokens
            ),
            post_processor=with_ids(self.post_processor, old_to_new),
            config=pretrained_folder.config_with_ids(self.config, old_to_new),
        )

    def without_merge_skipping(self) -> Self:
        """Return the tokenizer without merge skipping, or itself if it has none."""
        if not self.model.ignore_merges:
            return self
        return replace(self, model=self.model.unchecked(ignore_merges=False))

    def unreachable(self) -> tuple[str, ...]:
        """Tokens that the merges do not rebuild (STT), by id; added tokens are left out."""
        return unreachable_tokens(self)

    def byte_pieces(self) -> tuple[str, ...]:
        """Tokens that represent one byte: images, or "<0xNN>"."""
        return byte_pieces(self)

    def missing_byte_pieces(self) -> tuple[str, ...]:
        """Tokens for single bytes that the model needs to express any text, and lacks."""
        return missing_byte_pieces(self)

    def splits(self) -> Splits:
        """Of which two tokens each token is made: the last merge of its own string."""
        return self._splits

    @cached_property
    def _splits(self) -> Splits:
        return split_tokens(self)
