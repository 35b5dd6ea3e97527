"""Runtimes: the libraries that encode with a tokenizer folder, and how each of them opens it.

Owns the registry. A runtime opens the folder as its own users do: no id is corrected here. To add
one, write a function that opens a folder and add a line to `RUNTIMES`. `runtime_process` calls
these functions, `runtime_reports` compares the ids.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabshift.tokenizer.tokenizer import Tokenizer

TIME_LIMIT = 120.0
"""Seconds for one runtime to open a tokenizer and encode all texts."""

Encode = Callable[[str], Sequence[int]]
"""From a text to its ids, without BOS and EOS; strings of special tokens are recognised."""

Open = Callable[[Path], Encode]
"""Opens a tokenizer folder; raises whatever its library raises."""


class DoesNotApplyError(Exception):
    """The runtime does not read tokenizers of this kind at all."""


@dataclass(frozen=True)
class Runtime:
    """A library that encodes text with a tokenizer folder."""

    name: str  # of its distribution on PyPI
    open: Open  # run in a process of its own, which imports it by its name
    modules: tuple[str, ...]  # what must be importable
    used_by: str = ""  # the program that it is part of, if that has another name
    install: str = "vocabshift[runtimes]"  # what pip installs
    parses_special: bool = True  # whether it recognises special tokens in text

    @property
    def label(self) -> str:
        """The name for people."""
        return f"{self.used_by} ({self.name})" if self.used_by else self.name

    @property
    def is_installed(self) -> bool:
        """Whether all its modules can be found; none is imported, but packages around them."""
        with suppress(ImportError, ValueError):
            return all(find_spec(module) is not None for module in self.modules)
        return False

    @property
    def version(self) -> str | None:
        """Of the installed distribution."""
        from importlib.metadata import PackageNotFoundError, version

        with suppress(PackageNotFoundError):
            return version(self.name)
        return None


def _open_tokenizers(folder: Path) -> Encode:
    from tokenizers import Tokenizer as Backend

    backend = Backend.from_file(str(folder / "tokenizer.json"))
    return lambda text: backend.encode(text, add_special_tokens=False).ids


def _open_transformers(folder: Path) -> Encode:
    from transformers import AutoTokenizer

    fast: Any = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    return lambda text: fast(text, add_special_tokens=False)["input_ids"]


def _open_kitoken(folder: Path) -> Encode:
    from kitoken import Kitoken

    kitoken: Any = Kitoken.from_tokenizers_file(str(folder / "tokenizer.json"))
    return lambda text: kitoken.encode(text, True)


def _open_morpheme(folder: Path) -> Encode:
    from morpheme import Tokenizer as Morpheme

    morpheme = Morpheme.from_file(str(folder / "tokenizer.json"))
    return lambda text: morpheme.encode(text, add_special_tokens=False).ids


def _open_tuetoken(folder: Path) -> Encode:
    from tuetoken import AutoTokenizer

    config = folder / "tokenizer_config.json"
    given = str(config) if config.is_file() else None
    # `from_pretrained` asks the Hub even for a folder.
    tuetoken: Any = AutoTokenizer.from_file(str(folder / "tokenizer.json"), given)
    return lambda text: tuetoken.encode(text, add_special_tokens=False)


def _open_iree(folder: Path) -> Encode:
    from iree.tokenizer import Tokenizer as IreeTokenizer

    iree: Any = IreeTokenizer.from_file(str(folder / "tokenizer.json"))
    return iree.encode  # type: ignore[no-any-return]


def _open_executorch(folder: Path) -> Encode:
    from pytorch_tokenizers import CppHFTokenizer

    executorch: Any = CppHFTokenizer()
    executorch.load(str(folder / "tokenizer.json"))
    return lambda text: executorch.encode(text, 0, 0)


def _open_onnxruntime(folder: Path) -> Encode:
    from onnxruntime_extensions.pp_api import Tokenizer as OrtTokenizer

    tokenizer: Any = OrtTokenizer(str(folder), {"add_special_tokens": False})
    return tokenizer.tokenize  # type: ignore[no-any-return]


def _open_tiktoken(folder: Path) -> Encode:
    """The tokenizer as a `tiktoken.Encoding`: its pattern as we write it, its ids as ranks."""
    import tiktoken

    from vocabshift.text.patterns import from_spec
    from vocabshift.tokenizer.token_bytes import is_byte_level

    tokenizer = _bpe(folder)
    if not is_byte_level(tokenizer):
        raise DoesNotApplyError("only byte-level BPE is written for it here")
    steps = from_spec(tokenizer.pre_tokenizer)
    if tokenizer.normalizer is not None:
        raise ValueError("tiktoken has no normalizers, and this tokenizer has one")
    if steps is None or len(steps) != 1 or not (step := steps[0].exported()).is_isolated:
        n_steps = "others" if steps is None or len(steps) == 1 else len(steps)
        raise ValueError(f"tiktoken takes one step of matches; this pre-tokenizer has {n_steps}")
    special = {token.content: token.id for token in tokenizer.added_tokens}
    encoding = tiktoken.Encoding(
        "vocabshift",
        pat_str=step.regex,
        mergeable_ranks={
            spelt: token_id
            for token_id, spelt in tokenizer.token_bytes.items()
            if token_id not in special.values()
        },
        special_tokens=special,
    )
    return lambda text: encoding.encode(text, allowed_special="all")


def _open_sentencepiece(folder: Path) -> Encode:
    from sentencepiece import SentencePieceProcessor

    file = folder / "tokenizer.model"
    if not file.is_file():
        raise DoesNotApplyError("the folder has no tokenizer.model")
    if file.read_bytes()[:1] != b"\n":  # Llama-3's is a rank file
        raise DoesNotApplyError("its tokenizer.model is not SentencePiece's")
    processor: Any = SentencePieceProcessor(model_file=str(file))
    return processor.encode  # type: ignore[no-any-return]


def _open_llama_cpp(folder: Path) -> Encode:
    """The GGUF file of the folder, or a GGUF vocabulary made for it."""
    from llama_cpp import Llama

    options: dict[str, Any] = {"vocab_only": True, "verbose": False}
    files = sorted(folder.glob("*.gguf"))
    if files:
        llama: Any = Llama(str(files[0]), **options)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "vocabulary.gguf"
            file.write_bytes(_vocabulary(_bpe(folder)))
            llama = Llama(str(file), **options)
    return lambda text: llama.tokenize(text.encode(), add_bos=False, special=True)


def _bpe(folder: Path) -> Tokenizer:
    from vocabshift.errors import InvalidTokenizerError
    from vocabshift.tokenizer.formats.load import load_tokenizer

    try:
        return load_tokenizer(folder)
    except InvalidTokenizerError:
        raise DoesNotApplyError("only BPE is written for it here") from None


def _vocabulary(tokenizer: Tokenizer) -> bytes:
    """A GGUF file without tensors; NoPreTokenizerError if llama.cpp cannot give the ids."""
    from vocabshift.tokenizer.formats.gguf_header import header_bytes, key_bytes
    from vocabshift.tokenizer.formats.gguf_write import to_vocabulary

    keys = {
        "general.architecture": "llama",
        "llama.vocab_size": tokenizer.row_count,
        **to_vocabulary(tokenizer, tokenizer.row_count).keys,
    }
    data, _ = header_bytes([key_bytes(name, value) for name, value in keys.items()], [])
    return data


RUNTIMES: Mapping[str, Runtime] = {
    runtime.name: runtime
    for runtime in (
        Runtime("tokenizers", _open_tokenizers, ("tokenizers",)),
        Runtime("transformers", _open_transformers, ("transformers",), install="vocabshift[hf]"),
        Runtime("kitoken", _open_kitoken, ("kitoken",)),
        Runtime("morpheme", _open_morpheme, ("morpheme",)),
        Runtime("tuetoken", _open_tuetoken, ("tuetoken",)),
        Runtime("iree-tokenizer", _open_iree, ("iree.tokenizer",)),
        Runtime("pytorch-tokenizers", _open_executorch, ("pytorch_tokenizers",), "ExecuTorch"),
        Runtime("onnxruntime-extensions", _open_onnxruntime, ("onnxruntime_extensions",)),
        Runtime("tiktoken", _open_tiktoken, ("tiktoken",)),
        Runtime("sentencepiece", _open_sentencepiece, ("sentencepiece",), parses_special=False),
        Runtime(
            "llama-cpp-python",
            _open_llama_cpp,
            ("llama_cpp",),
            "llama.cpp",
            install="llama-cpp-python",
        ),
    )
}
"""Every runtime by its name."""
