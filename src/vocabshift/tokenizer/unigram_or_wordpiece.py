"""PlainTokenizer: a Unigram or WordPiece tokenizer, checked; and the door for all that can be
pruned.

Owns what is read from such a `tokenizer.json`, how it is numbered anew, and its folder. Everything
that encodes or decodes is left to `tokenizers`. BPE is `bpe/`'s.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.storage.output import atomic_folder
from vocabshift.tokenizer import parsed_json, post_processor, pretrained_folder, tokenizer_json
from vocabshift.tokenizer.components import check_normalizer
from vocabshift.tokenizer.formats import load, sentencepiece_unigram
from vocabshift.tokenizer.formats import sentencepiece as sentencepiece_model
from vocabshift.tokenizer.other_models import check_model, kind_of
from vocabshift.tokenizer.tokenizer import AddedToken, Tokenizer, ids_at_load, vocab_with

if TYPE_CHECKING:
    import tokenizers

KINDS = ("Unigram", "WordPiece")
_NOT_PRUNABLE = "prune takes BPE, Unigram and WordPiece tokenizers"


@dataclass(frozen=True, eq=False)
class PlainTokenizer:
    """A tokenizer whose tokens are made of no others; made by `from_json`."""

    document: Mapping[str, Any]  # tokenizer.json, parsed
    added_tokens: tuple[AddedToken, ...]  # by id
    config: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None
    name: str = "tokenizer"

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return str(self.document["model"]["type"])

    @cached_property
    def vocab(self) -> dict[str, int]:
        """Tokens of the model, by id."""
        vocab = self.document["model"]["vocab"]
        if self.kind == "Unigram":
            return {token: token_id for token_id, (token, _) in enumerate(vocab)}
        return dict(sorted(vocab.items(), key=lambda entry: entry[1]))

    @property
    def vocab_size(self) -> int:
        """Tokens of the model."""
        return len(self.vocab)

    @property
    def row_count(self) -> int:
        """Embedding rows a model needs: the highest id, added tokens included, plus one."""
        ids = [*self.vocab.values(), *(token.id for token in self.added_tokens)]
        return max(ids, default=-1) + 1

    @property
    def unk_token(self) -> str | None:
        """What stands for characters that no token has."""
        model = self.document["model"]
        if self.kind == "WordPiece":
            return str(model["unk_token"])
        return None if model.get("unk_id") is None else str(model["vocab"][model["unk_id"]][0])

    @cached_property
    def scores(self) -> dict[int, float]:
        """Log probability of each token of a Unigram model, by id; nothing for WordPiece."""
        vocab = self.document["model"]["vocab"]
        return dict(enumerate(score for _, score in vocab)) if self.kind == "Unigram" else {}

    @property
    def prefix(self) -> str:
        """What a token inside a word begins with ("##"); nothing for Unigram."""
        model = self.document["model"]
        return str(model.get("continuing_subword_prefix", "##")) if self.kind != "Unigram" else ""

    @cached_property
    def backend(self) -> tokenizers.Tokenizer:
        """The same in the `tokenizers` library."""
        return tokenizer_json.backend_of(_text(self.document))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits that name what it does to text (see `bpe.fingerprint`)."""
        document = {**self.document, "post_processor": None, "decoder": None}
        text = json.dumps(document, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def with_tokens(self, old_to_new: Mapping[int, int]) -> PlainTokenizer:
        """The tokenizer of these tokens alone, scores kept; `old_to_new` keeps their order."""
        model = dict(self.document["model"])
        if self.kind == "Unigram":
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
        document = {
            **self.document,
            "added_tokens": tokenizer_json.write_added_tokens(added),
            "post_processor": post_processor.with_ids(
                self.document.get("post_processor"), old_to_new
            ),
            "model": model,
        }
        made = from_json(document, name=self.name)
        config = pretrained_folder.config_with_ids(self.config, old_to_new)
        return replace(made, config=config, chat_template=self.chat_template)

    def with_added(self, tokens: Sequence[AddedToken]) -> PlainTokenizer:
        """The tokenizer with these added tokens behind those that it has."""
        added = tokenizer_json.write_added_tokens((*self.added_tokens, *tokens))
        made = from_json({**self.document, "added_tokens": added}, name=self.name)
        return replace(made, config=self.config, chat_template=self.chat_template)

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write a Hugging Face folder, atomically; FileExistsError without `force`."""
        with atomic_folder(folder, force=force) as partial:
            self.write_files(partial)
        return Path(folder)

    def write_files(self, folder: str | Path) -> None:
        """Write the files into a folder that is there, and compare what `tokenizers` reads."""
        from tokenizers import Tokenizer as Backend

        path = Path(folder)
        file = path / "tokenizer.json"
        file.write_text(_text(self.document) + "\n", encoding="utf-8")
        config = pretrained_folder.loadable_config(self.config)
        config.setdefault("model_input_names", self._input_names())
        pretrained_folder.write_config(config, self.chat_template, path)
        backend = Backend.from_file(str(file))
        expected = self.vocab | {token.content: token.id for token in self.added_tokens}
        if backend.get_vocab(with_added_tokens=True) != expected:
            raise InvalidTokenizerError(f"{file} reads back with another vocabulary than written")
        for text in pretrained_folder.PROBES:
            if backend.encode(text).ids != self.backend.encode(text).ids:
                raise InvalidTokenizerError(f"{file} reads back with other ids for {text!r}")

    def _input_names(self) -> list[str]:
        """Segments are told apart only where the template does: T5 takes no token_type_ids."""
        template = self.document.get("post_processor") or {}
        has_segments = template.get("type") == "BertProcessing" or '"type_id": 1' in json.dumps(
            template
        )
        return ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"]


def from_json(
    source: str | bytes | Mapping[str, Any], *, name: str = "tokenizer"
) -> PlainTokenizer:
    """The tokenizer of a `tokenizer.json`; InvalidTokenizerError for anything not sound."""
    data = source if isinstance(source, Mapping) else parsed_json.parse(source)
    kind = kind_of(data)
    if kind not in KINDS:
        raise InvalidTokenizerError(f"the model is of type {kind!r}; {_NOT_PRUNABLE}")
    check_model(data["model"], kind)
    check_normalizer(data.get("normalizer"))
    added = tokenizer_json.read_added_tokens(data.get("added_tokens"))
    by_id = tuple(sorted(added, key=lambda token: token.id))
    # Truncation and padding belong to a call, and would cut or lengthen texts.
    value = PlainTokenizer({**data, "truncation": None, "padding": None}, by_id, name=name)
    if ids_at_load(added, value.vocab) != [token.id for token in added]:
        raise InvalidTokenizerError(
            "added tokens state other ids than `tokenizers` gives them at load; correct the ids"
        )
    if len({token.id for token in added}) != len(added):
        raise InvalidTokenizerError("two added tokens have the same id")
    assert value.backend is not None  # what `tokenizers` does not read is refused here
    return value


def open_prunable(source: Any) -> Tokenizer | PlainTokenizer:
    """A tokenizer of any kind that can be pruned: ours, of `tokenizers` or transformers, a path.

    InvalidTokenizerError for one that is neither BPE nor Unigram nor WordPiece.
    """
    if isinstance(source, Tokenizer | PlainTokenizer):
        return source
    if isinstance(source, str | Path):
        try:
            return load.load_tokenizer(source)
        except InvalidTokenizerError as error:
            plain = _open_plain(load.local_path(source))
            if plain is None:
                raise error from None
            return plain
    backend = getattr(source, "backend_tokenizer", source)
    if hasattr(backend, "to_str"):
        data = parsed_json.parse(backend.to_str())
        if kind_of(data) != "BPE":
            value = from_json(data, name=_name_of(source))
            if backend is source:
                return value
            config, template = pretrained_folder.config_of_fast(source)
            return replace(value, config=config, chat_template=template)
    return load.as_tokenizer(source)


def _open_plain(path: Path) -> PlainTokenizer | None:
    """The tokenizer of a folder or file, or None where no file of another kind than BPE is it."""
    try:
        file = load.tokenizer_file(path)
        data = file.read_bytes()
        document = _document_of(data)
    except (InvalidTokenizerError, OSError):
        return None
    if document is None:
        return None
    try:
        value = from_json(document, name=path.name if path.is_dir() else path.stem)
    except InvalidTokenizerError as error:
        raise InvalidTokenizerError(f"{file}: {error}") from None
    if not path.is_dir():
        return value
    config, template = pretrained_folder.read_config(path)
    return replace(value, config=config, chat_template=template)


def _document_of(data: bytes) -> Mapping[str, Any] | None:
    """The `tokenizer.json` of a file of another kind than BPE; a SentencePiece model is made one.

    None for BPE and for what neither is.
    """
    if data[:1] == b"\n":  # field 1, a message: as `load` tells a SentencePiece model
        contents = sentencepiece_model.read_model(data)
        if contents.kind != "Unigram":
            return None
        return sentencepiece_unigram.to_document(contents.pieces, contents.settings)
    document = parsed_json.parse(data)
    return None if kind_of(document) == "BPE" else document


def _name_of(source: Any) -> str:
    return Path(str(getattr(source, "name_or_path", "") or "tokenizer")).name


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
