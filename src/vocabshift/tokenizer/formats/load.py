"""Load a tokenizer from wherever it is: `load_tokenizer` and `as_tokenizer`.

Owns telling the formats apart, by content and never by name (Llama-3's rank file is called
`tokenizer.model` like a SentencePiece model), and the way to the Hub.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Protocol

from vocabshift.errors import InvalidTokenizerError
from vocabshift.storage.hub import download
from vocabshift.tokenizer import parsed_json, pretrained_folder, tokenizer_json
from vocabshift.tokenizer.formats import gguf as gguf_file
from vocabshift.tokenizer.formats import gguf as gguf_vocab
from vocabshift.tokenizer.formats import sentencepiece as sentencepiece_model
from vocabshift.tokenizer.formats import tekken
from vocabshift.tokenizer.formats import tiktoken as ranks
from vocabshift.tokenizer.formats import tiktoken as tiktoken_encoding
from vocabshift.tokenizer.tokenizer import Tokenizer

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


TokenizerLike = Tokenizer | HasBackend | HasJson | HasRanks | str | Path
"""What `as_tokenizer` takes: one of ours, of transformers (fast), `tokenizers` or tiktoken; a path,
Hub name or "tiktoken:NAME"."""


def load_tokenizer(source: str | Path, *, pattern: str | None = None) -> Tokenizer:
    """A Tokenizer from a folder, a file of any known format, a Hub name or "tiktoken:NAME".

    `pattern`: the name or regex of the pre-tokenizer, for rank files and GGUF vocabularies that do
    not say it themselves. InvalidTokenizerError for a file that cannot be used, FileNotFoundError
    for one that is not there. No code that lies beside a tokenizer is ever run.
    """
    named = encoding_name(source)
    if named is not None:
        _refuse_pattern(pattern, "tiktoken encoding")
        return tiktoken_encoding.load_encoding(named)
    path = local_path(source)
    file = tokenizer_file(path)
    try:
        if path.is_dir() and file.name == "tokenizer.json":
            _refuse_pattern(pattern, "tokenizer.json")
            return pretrained_folder.load_folder(path)
        return _load_file(file, pattern, name=path.name if path.is_dir() else _stem(file))
    except InvalidTokenizerError as error:
        raise InvalidTokenizerError(f"{file}: {error}") from None


def encoding_name(source: str | Path) -> str | None:
    """NAME of "tiktoken:NAME"; None for anything else, also for a file of such a name."""
    text = str(source)
    if not text.startswith(tiktoken_encoding.PREFIX) or Path(text).exists():
        return None
    return text.removeprefix(tiktoken_encoding.PREFIX)


def local_path(source: str | Path) -> Path:
    """The folder or file of a tokenizer; of a Hub name, where it was downloaded to.

    FileNotFoundError where there is neither.
    """
    path = Path(source)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        exists = False
    return path if exists else download(str(source), _HUB_FILES)


def as_tokenizer(tokenizer: TokenizerLike) -> Tokenizer:
    """A Tokenizer from one of ours, of transformers (fast), `tokenizers` or tiktoken, or a path."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str | Path):
        return load_tokenizer(tokenizer)
    if tiktoken_encoding.is_encoding(tokenizer):
        return tiktoken_encoding.from_encoding(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "to_str"):
        name = Path(str(getattr(tokenizer, "name_or_path", "") or "tokenizer")).name
        value = tokenizer_json.from_json(backend.to_str(), name=name)
        return value if backend is tokenizer else pretrained_folder.with_config_of(value, tokenizer)
    raise TypeError(
        f"{type(tokenizer).__name__} is no tokenizer that can be used; give a vocabshift, "
        "tokenizers, tiktoken or fast transformers tokenizer, or a path"
    )


def _load_file(file: Path, pattern: str | None, *, name: str) -> Tokenizer:
    with file.open("rb") as stream:
        head = stream.read(4096)
    if not head:
        raise InvalidTokenizerError("the file is empty")
    if head.startswith(gguf_file.MAGIC):
        with file.open("rb") as stream:
            # Mapped, for a model's GGUF holds gigabytes of tensors behind its vocabulary.
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        with data:
            return gguf_vocab.from_gguf(data, pattern=pattern, name=name)  # type: ignore[arg-type]
    if ranks.is_ranks(head):
        return ranks.from_ranks(file.read_bytes(), pattern=pattern, name=name)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return _load_json(file.read_bytes(), pattern, name=name)
    if head[0] == 0x0A:  # field 1, a message: a SentencePiece model begins with its pieces
        _refuse_pattern(pattern, "SentencePiece model")
        return sentencepiece_model.from_model(file.read_bytes(), name=name)
    raise InvalidTokenizerError(
        "this is none of: tokenizer.json, tiktoken rank file, tekken file, SentencePiece model, "
        "GGUF file"
    )


def _load_json(data: bytes, pattern: str | None, *, name: str) -> Tokenizer:
    parsed = parsed_json.parse(data)
    if tekken.is_tekken(parsed):
        _refuse_pattern(pattern, "tekken file")
        return tekken.from_tekken(parsed, name=name)
    _refuse_pattern(pattern, "tokenizer.json")
    return tokenizer_json.from_json(parsed, name=name)


def _refuse_pattern(pattern: str | None, kind: str) -> None:
    if pattern is not None:
        raise InvalidTokenizerError(
            f"--pattern does not fit: a {kind} brings its own pre-tokenizer"
        )


def _stem(file: Path) -> str:
    """A name for a file: its folder's where the file name says nothing."""
    plain = file.name.split(".")[0] in ("tokenizer", "tekken")
    return file.resolve().parent.name if plain else file.stem


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
