"""Load a tokenizer from wherever it is: `load_tokenizer`, `as_tokenizer` and `open_tokenizer`.

The first two return BPE, the last one any kind. Owns the detection of formats, by content and never
by name (Llama-3's rank file is called `tokenizer.model` like a SentencePiece model), and downloads
from the Hub.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from vocabshift.errors import InvalidTokenizerError
from vocabshift.storage.hub import download, is_there
from vocabshift.tokenizer.components import SentencePieceRules
from vocabshift.tokenizer.formats import (
    gguf,
    gguf_header,
    sentencepiece,
    tekken,
    tiktoken,
)
from vocabshift.tokenizer.model import no_collection
from vocabshift.tokenizer.parsed_json import kind_of, parse
from vocabshift.tokenizer.pretrained_folder import config_of_fast, read_config
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

_IN_FOLDER = (
    *("tokenizer.json", "tekken*.json", "tokenizer.model*", "*.tiktoken", "*.model.v*"),
    "*.gguf",
)
_HUB_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("chat_template.jinja", "chat_template.json", "tokenizer.model", "tekken.json"),
)


class HasBackend(Protocol):
    """A fast tokenizer of transformers."""

    @property
    def backend_tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer` in it."""


class HasJson(Protocol):
    """A `tokenizers.Tokenizer`."""

    def to_str(self, pretty: bool = False) -> str:
        """The text of its `tokenizer.json`."""


class HasRanks(Protocol):
    """A `tiktoken.Encoding`."""

    @property
    def n_vocab(self) -> int:
        """Tokens, special ones included."""


TokenizerLike = (
    Tokenizer | UnigramOrWordPieceTokenizer | HasBackend | HasJson | HasRanks | str | Path
)
"""What the verbs take: one of ours, of transformers (fast), `tokenizers` or tiktoken; a path, Hub
name or "tiktoken:NAME". Verbs that learn tokens take BPE alone and raise InvalidTokenizerError."""


def load_tokenizer(source: str | Path, *, pattern: str | None = None) -> Tokenizer:
    """A Tokenizer from a folder, a file of any known format, a Hub name or "tiktoken:NAME".

    `source`: any of these; the format is recognised by content, not by name. `pattern`: the name or
    regex of the pre-tokenizer, for rank files and GGUF vocabularies that do not say it themselves.

    InvalidTokenizerError for a file that cannot be used, FileNotFoundError for one that is not
    there. Code in a tokenizer's folder is never run.
    """
    named = encoding_name(source)
    if named is not None:
        _refuse_pattern(pattern, "tiktoken encoding")
        return tiktoken.load_encoding(named)
    path = local_path(source)
    file = tokenizer_file(path)
    try:
        if path.is_dir() and file.name == "tokenizer.json":
            _refuse_pattern(pattern, "tokenizer.json")
            return load_folder(path)
        with no_collection():
            return _load_file(file, pattern, name=path.name if path.is_dir() else _stem(file))
    except InvalidTokenizerError as error:
        raise InvalidTokenizerError(f"{file}: {error}") from None


def encoding_name(source: str | Path) -> str | None:
    """NAME of "tiktoken:NAME"; None for anything else, also for a file of such a name."""
    text = str(source)
    if not text.startswith(tiktoken.PREFIX) or Path(text).exists():
        return None
    return text.removeprefix(tiktoken.PREFIX)


def local_path(source: str | Path) -> Path:
    """The folder or file of a tokenizer; of a Hub name, where it was downloaded to.

    FileNotFoundError where there is neither.
    """
    return Path(source) if is_there(source) else download(str(source), _HUB_FILES)


def load_folder(folder: str | Path) -> Tokenizer:
    """The tokenizer of a folder that holds a `tokenizer.json`, with its config and template."""
    path = Path(folder)
    tokenizer = Tokenizer.from_json((path / "tokenizer.json").read_bytes(), name=path.name)
    config, template = read_config(path)
    rules = None if tokenizer.model.is_byte_level else _piece_rules(path)
    return replace(tokenizer, config=config, chat_template=template, piece_rules=rules)


def as_tokenizer(tokenizer: Any) -> Tokenizer:
    """A Tokenizer from one of ours, of transformers (fast), `tokenizers` or tiktoken, or a path."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str | Path):
        return load_tokenizer(tokenizer)
    if tiktoken.is_encoding(tokenizer):
        return tiktoken.from_encoding(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        value = Tokenizer.from_json(backend.to_str(), name=_name_of(tokenizer))
        if backend is tokenizer:
            return value
        config, template = config_of_fast(tokenizer)
        return replace(value, config=config, chat_template=template)
    raise TypeError(
        f"{type(tokenizer).__name__} is no tokenizer that can be used; give a vocabshift, "
        "tokenizers, tiktoken or fast transformers tokenizer, or a path"
    )


def open_tokenizer(source: Any) -> Tokenizer | UnigramOrWordPieceTokenizer:
    """A tokenizer of any kind: one of ours, of transformers (fast) or `tokenizers`, or a path.

    InvalidTokenizerError for one that is neither BPE nor Unigram nor WordPiece.
    """
    if isinstance(source, Tokenizer | UnigramOrWordPieceTokenizer):
        return source
    if isinstance(source, str | Path):
        try:
            return load_tokenizer(source)
        except InvalidTokenizerError as error:
            other = _open_other_kind(local_path(source))
            if other is None:
                raise error from None
            return other
    backend = getattr(source, "backend_tokenizer", source)
    if hasattr(backend, "to_str"):
        data = parse(backend.to_str())
        if kind_of(data) != "BPE":
            value = UnigramOrWordPieceTokenizer.from_json(data, name=_name_of(source))
            if backend is source:
                return value
            config, template = config_of_fast(source)
            return replace(value, config=config, chat_template=template)
    return as_tokenizer(source)


def _open_other_kind(path: Path) -> UnigramOrWordPieceTokenizer | None:
    """The tokenizer of a folder or file, or None where no file of another kind than BPE is it."""
    try:
        file = tokenizer_file(path)
        document = _document_of(file.read_bytes())
    except (InvalidTokenizerError, OSError):
        return None
    if document is None:
        return None
    try:
        name = path.name if path.is_dir() else path.stem
        value = UnigramOrWordPieceTokenizer.from_json(document, name=name)
    except InvalidTokenizerError as error:
        raise InvalidTokenizerError(f"{file}: {error}") from None
    if not path.is_dir():
        return value
    config, template = read_config(path)
    return replace(value, config=config, chat_template=template)


def _document_of(data: bytes) -> Mapping[str, Any] | None:
    """The `tokenizer.json` of a file of another kind than BPE; a SentencePiece model is made one.

    None for BPE and for what neither is.
    """
    if data[:1] == b"\n":  # field 1, a message: a SentencePiece model begins with its pieces
        contents = sentencepiece.read_model(data)
        if contents.kind != "Unigram":
            return None
        return sentencepiece.to_document(contents.pieces, contents.settings)
    document = parse(data)
    return None if kind_of(document) == "BPE" else document


def _name_of(source: Any) -> str:
    return Path(str(getattr(source, "name_or_path", "") or "tokenizer")).name


def _piece_rules(folder: Path) -> SentencePieceRules | None:
    """The rules of the SentencePiece model in a tokenizer's folder; None if there is none.

    The tokenizer does not need it: a file that is damaged, or something else, is left alone.
    """
    try:
        return sentencepiece.read_rules((folder / "tokenizer.model").read_bytes())
    except (OSError, InvalidTokenizerError):
        return None


def _load_file(file: Path, pattern: str | None, *, name: str) -> Tokenizer:
    with file.open("rb") as stream:
        head = stream.read(4096)
    if not head:
        raise InvalidTokenizerError("the file is empty")
    if head.startswith(gguf_header.MAGIC):
        with file.open("rb") as stream:
            # Mapped, for a model's GGUF holds gigabytes of tensors after its vocabulary.
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        with data:
            return gguf.from_gguf(data, pattern=pattern, name=name)  # type: ignore[arg-type]
    if tiktoken.is_ranks(head):
        return tiktoken.from_ranks(file.read_bytes(), pattern=pattern, name=name)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return _load_json(file.read_bytes(), pattern, name=name)
    if head[0] == 0x0A:  # field 1, a message: a SentencePiece model begins with its pieces
        _refuse_pattern(pattern, "SentencePiece model")
        return sentencepiece.from_model(file.read_bytes(), name=name)
    raise InvalidTokenizerError(
        "this is none of: tokenizer.json, tiktoken rank file, tekken file, SentencePiece model, "
        "GGUF file"
    )


def _load_json(data: bytes, pattern: str | None, *, name: str) -> Tokenizer:
    parsed = parse(data)
    if tekken.is_tekken(parsed):
        _refuse_pattern(pattern, "tekken file")
        return tekken.from_tekken(parsed, name=name)
    _refuse_pattern(pattern, "tokenizer.json")
    return Tokenizer.from_json(parsed, name=name)


def _refuse_pattern(pattern: str | None, kind: str) -> None:
    if pattern is not None:
        raise InvalidTokenizerError(
            f"--pattern does not fit: a {kind} brings its own pre-tokenizer"
        )


def _stem(file: Path) -> str:
    """A name for a file: its folder's where the file name says nothing."""
    says_nothing = file.name.split(".")[0] in ("tokenizer", "tekken")
    return file.resolve().parent.name if says_nothing else file.stem


def tokenizer_file(path: Path) -> Path:
    """The file that a tokenizer is read from: `path` itself, or the first known in a folder."""
    if not path.is_dir():
        return path
    folder = path
    for glob in _IN_FOLDER:
        found = sorted(path for path in folder.glob(glob) if path.is_file())
        if found:
            return found[-1]
    raise InvalidTokenizerError(
        f"{folder} holds no tokenizer: none of {', '.join(_IN_FOLDER)} is there"
    )
