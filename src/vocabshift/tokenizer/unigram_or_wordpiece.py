"""UnigramOrWordPieceTokenizer: a checked tokenizer whose tokens are not made of other tokens.

Owns reading and renumbering such a `tokenizer.json`, and the meaning of its tokens. `tokenizers`
encodes and decodes. For BPE see `tokenizer`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import parsed_json, pretrained_folder
from vocabshift.tokenizer.added_tokens import (
    AddedToken,
    ids_at_load,
    read_added_tokens,
    vocab_with,
    write_added_tokens,
)
from vocabshift.tokenizer.any_tokenizer import (
    Buffer,
    Ids,
    Offsets,
    decode_flat,
    encode_flat,
    ids_of_tokens,
    ids_without,
    join_batches,
)
from vocabshift.tokenizer.components import Spec, check_components, with_ids
from vocabshift.tokenizer.splits import Splits, no_splits
from vocabshift.tokenizer.token_bytes import ANY_BYTE_PIECE, BYTE_PIECE, BYTE_PIECES, text_pieces
from vocabshift.tokenizer.tokenizer_json import backend_of

if TYPE_CHECKING:
    import tokenizers

KINDS = ("Unigram", "WordPiece")

_AT_ONCE = 1000  # documents that `tokenizers` encodes at once: it makes large objects of them


@dataclass(frozen=True, eq=False)
class UnigramOrWordPieceTokenizer:
    """A tokenizer whose tokens are made of no others; made by `from_json`.

    Fulfils `AnyTokenizer`, where the members without a docstring are described.
    """

    document: Mapping[str, Any]  # tokenizer.json, parsed
    added_tokens: tuple[AddedToken, ...]  # by id
    config: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    name: str = "tokenizer"

    @classmethod
    def from_json(
        cls, source: str | bytes | Mapping[str, Any], *, name: str = "tokenizer"
    ) -> UnigramOrWordPieceTokenizer:
        """The tokenizer of a `tokenizer.json`, given as its text or its parsed object;
        InvalidTokenizerError for anything that is not a sound tokenizer of one of KINDS."""
        data = source if isinstance(source, Mapping) else parsed_json.parse(source)
        kind = parsed_json.kind_of(data)
        if kind not in KINDS:
            raise InvalidTokenizerError(
                f"the model is of type {kind!r}; prune takes BPE, Unigram and WordPiece tokenizers"
            )
        parsed_json.check_other_model(data["model"], kind)
        check_components(data)
        added = read_added_tokens(data.get("added_tokens"))
        # Old files name no type. Truncation and padding would cut or lengthen texts.
        own = {"model": {**data["model"], "type": kind}, "truncation": None, "padding": None}
        value = cls({**data, **own}, tuple(sorted(added, key=lambda token: token.id)), name=name)
        if ids_at_load(added, value.vocab) != [token.id for token in added]:
            raise InvalidTokenizerError(
                "added tokens state other ids than `tokenizers` gives them at load; correct the ids"
            )
        if len({token.id for token in added}) != len(added):
            raise InvalidTokenizerError("two added tokens have the same id")
        assert value.backend is not None  # what `tokenizers` does not read is refused here
        return value

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: the fields, without what was computed from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return str(self._model["type"])

    @property
    def _model(self) -> Mapping[str, Any]:
        model: Mapping[str, Any] = self.document["model"]
        return model

    @cached_property
    def vocab(self) -> Mapping[str, int]:
        """Tokens of the model, by id."""
        vocab = self._model["vocab"]
        if self.kind == "Unigram":
            return {token: token_id for token_id, (token, _) in enumerate(vocab)}
        return dict(sorted(vocab.items(), key=lambda entry: entry[1]))

    @property
    def vocab_size(self) -> int:
        """Tokens of the model; added tokens outside it are not counted."""
        return len(self.vocab)

    @cached_property
    def row_count(self) -> int:
        """Embedding rows a model needs: the highest id, added tokens included, plus one."""
        return max(ids_of_tokens(self)) + 1

    @property
    def unk_token(self) -> str | None:
        """The token for characters that no token has."""
        model = self._model
        if self.kind == "WordPiece":
            return str(model["unk_token"])
        return None if model.get("unk_id") is None else str(model["vocab"][model["unk_id"]][0])

    @property
    def continuing_prefix(self) -> str:
        """What a token inside a word begins with ("##"); nothing for Unigram."""
        if self.kind == "Unigram":
            return ""
        return str(self._model.get("continuing_subword_prefix", "##"))

    @cached_property
    def scores(self) -> Mapping[int, float]:
        """Log probability of each token of a Unigram model, by id; nothing for WordPiece."""
        vocab = self._model["vocab"]
        return dict(enumerate(score for _, score in vocab)) if self.kind == "Unigram" else {}

    @property
    def post_processor(self) -> Spec | None:
        """What puts special tokens around a text."""
        spec: Spec | None = self.document.get("post_processor")
        return spec

    @cached_property
    def backend(self) -> tokenizers.Tokenizer:
        """The same in the `tokenizers` library."""
        return backend_of(self.to_json())

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits that identify its effect on text."""
        document = {**self.document, "post_processor": None, "decoder": None}
        text = json.dumps(document, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @cached_property
    def token_bytes(self) -> Mapping[int, bytes]:
        """The text bytes of each token that is not special, by id.

        "▁" is a space, "##ing" is "ing", a byte piece its byte; the unknown token is none of these.
        """
        prefix = self.continuing_prefix
        hidden = {token.id for token in self.added_tokens}
        hidden.add(self.vocab.get(self.unk_token or "", -1))
        spell = text_pieces(self.document)
        table = {
            token_id: spell(token.removeprefix(prefix))
            for token, token_id in self.vocab.items()
            if token_id not in hidden
        }
        table |= {t.id: t.content.encode() for t in self.added_tokens if not t.special}
        return table

    def encode_batch(
        self, texts: Sequence[str], *, threads: int = 1, parse_special: bool = True
    ) -> tuple[Ids, Offsets]:
        """Flat ids (int32) of the texts and offsets (n_texts + 1,), int64; no BOS or EOS."""
        del threads  # their number is the library's own
        return encode_flat(self.backend, texts, parse_special=parse_special)

    def encode_documents(
        self, data: Buffer, starts: NDArray[np.int64], ends: NDArray[np.int64], *, threads: int = 1
    ) -> tuple[Ids, Offsets]:
        """The same for UTF-8 bytes: document i is data[starts[i]:ends[i]]."""
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        batches = [
            self.encode_batch(
                [str(data[start:end], "utf-8") for start, end in spans[at : at + _AT_ONCE]],
                threads=threads,
            )
            for at in range(0, max(len(spans), 1), _AT_ONCE)
        ]
        return join_batches(batches)

    def decode_batch(self, ids: Ids, offsets: Offsets) -> list[str]:
        """The texts of flat ids and offsets, special tokens kept."""
        return decode_flat(self.backend, ids, offsets)

    def without(self, ids: Iterable[int], *, keep_ids: bool = False) -> Self:
        """The tokenizer without these tokens; ValueError for a Unigram one with `keep_ids`."""
        return self.renumbered(ids_without(self, ids, keep_ids=keep_ids))

    def renumbered(self, old_to_new: Mapping[int, int]) -> Self:
        """The tokenizer of the tokens in `old_to_new` alone, scores kept.

        ValueError where a Unigram tokenizer would get holes: its ids are places in a list.
        """
        model = dict(self._model)
        if self.kind == "Unigram":
            if any(old_to_new[old] != new for new, old in enumerate(sorted(old_to_new))):
                raise ValueError("the ids of a Unigram tokenizer are places in a list")
            entries = enumerate(model["vocab"])
            model["vocab"] = [entry for token_id, entry in entries if token_id in old_to_new]
            if model.get("unk_id") is not None:
                model["unk_id"] = old_to_new[model["unk_id"]]
        else:
            model["vocab"] = {
                token: old_to_new[token_id]
                for token, token_id in self.vocab.items()
                if token_id in old_to_new
            }
        added = tuple(replace(token, id=old_to_new[token.id]) for token in self.added_tokens)
        if self.kind != "Unigram" and ids_at_load(added, model["vocab"]) != [t.id for t in added]:
            model["vocab"] = vocab_with(model["vocab"], added)  # else they would be numbered anew
        return self._with(
            config=pretrained_folder.config_with_ids(self.config, old_to_new),
            added_tokens=write_added_tokens(added),
            post_processor=with_ids(self.post_processor, old_to_new),
            model=model,
        )

    def with_added(self, tokens: Sequence[AddedToken]) -> Self:
        """The tokenizer with these added tokens after those that it has."""
        return self._with(added_tokens=write_added_tokens((*self.added_tokens, *tokens)))

    def _with(self, *, config: Mapping[str, Any] | None = None, **parts: Any) -> Self:
        """The tokenizer with other parts of its document, checked again."""
        made = type(self).from_json({**self.document, **parts}, name=self.name)
        return replace(
            self,
            document=made.document,
            added_tokens=made.added_tokens,
            config=self.config if config is None else config,
        )

    def without_merge_skipping(self) -> Self:
        """Return itself, because there are no merges."""
        return self

    def unreachable(self) -> tuple[str, ...]:
        """Return tokens that their own text does not yield, because others have a better score.

        The model alone is asked, without normalizer and pre-tokenizer. Byte pieces, added tokens,
        the unknown token and tokens inside a word are not counted.
        """
        model = self.backend.model
        added = (token.content for token in self.added_tokens)
        outside = {*added, *self.byte_pieces(), self.unk_token}
        return tuple(
            token
            for token, token_id in self.vocab.items()
            if token not in outside
            and not token.startswith(self.continuing_prefix or "\0")
            and [piece.id for piece in model.tokenize(token)] != [token_id]
        )

    def byte_pieces(self) -> tuple[str, ...]:
        """Tokens spelt "<0xNN>", by id."""
        return tuple(token for token in self.vocab if BYTE_PIECE.fullmatch(token))

    def missing_byte_pieces(self) -> tuple[str, ...]:
        """Byte pieces that a model which falls back on bytes lacks."""
        if not self._model.get("byte_fallback"):
            return ()
        return tuple(piece for piece in BYTE_PIECES if piece not in self.vocab)

    def splits(self) -> Splits:
        """No token is made of others; single characters and byte pieces are the smallest."""
        added = {token.content for token in self.added_tokens}
        atomic = np.zeros(self.row_count, dtype=bool)
        for token, token_id in self.vocab.items():
            text = token.removeprefix(self.continuing_prefix) or token
            is_smallest = len(text) == 1 or ANY_BYTE_PIECE.fullmatch(token) is not None
            atomic[token_id] = is_smallest and token not in added
        return no_splits(atomic)

    def to_json(self) -> str:
        """The text of `tokenizer.json`."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":"))

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write a folder, atomically; FileExistsError without `force`, or for weights and code."""
        return pretrained_folder.save_pretrained(self, folder, force=force)
