"""Encoder: text -> ids, fast, with the ids that `tokenizers` gives.

Owns the choice of how a tokenizer runs: wholly in the core; in the core behind a normalizer or
pre-tokenizer of `tokenizers`; or, for the few kinds of model that the core does not know, wholly
in `tokenizers`. All three give the same ids; only speed differs (`Encoder.engine` says which).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.bpe import byte_level
from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.tokenizer import AddedToken, Spec, Tokenizer
from vocabshift.text import patterns

if TYPE_CHECKING:
    from tokenizers.normalizers import Normalizer
    from tokenizers.pre_tokenizers import PreTokenizer

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]
Engine = Literal["core", "core behind tokenizers", "tokenizers"]

_ASCII_SAFE = {"NFC", "NFD", "NFKC", "NFKD"}  # these leave ASCII text as it is


class Encoder:
    """A tokenizer compiled for encoding.

    Thread-safe; one encoder serves one call at a time and uses `threads` within a batch.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Compile `tokenizer`: a `Tokenizer`, a Hugging Face fast tokenizer, or a path."""
        from vocabshift.bpe.load import as_tokenizer

        self.tokenizer: Tokenizer = as_tokenizer(tokenizer)
        self._pipeline = _Pipeline(self.tokenizer)
        self._with_special = self._pipeline.text_encoder(self.tokenizer.added_tokens)
        self._without_special: _core.TextEncoder | None = None
        self._template: tuple[Ids, Ids] | None = None

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Encoder:
        """Load a tokenizer from a folder, file or Hub name and compile it."""
        from vocabshift.bpe.load import load_tokenizer

        return cls(load_tokenizer(source))

    @property
    def engine(self) -> Engine:
        """What runs: the core alone, the core behind parts of `tokenizers`, or `tokenizers`."""
        return self._pipeline.engine

    def encode(
        self, text: str, *, add_special_tokens: bool = False, parse_special: bool = True
    ) -> Ids:
        """Ids of a text, shape (n_tokens,), int32.

        `add_special_tokens` puts the template's tokens (BOS, EOS) around it. Special-token
        strings in the text are recognised as `tokenizers` does; `parse_special=False` reads them
        as text.
        """
        ids = self._pipeline.encode(self._core(parse_special), text, parse_special)
        if not add_special_tokens:
            return ids
        before, after = self._template_ids()
        return np.concatenate([before, ids, after])

    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        threads: int = 1,
        add_special_tokens: bool = False,
        parse_special: bool = True,
    ) -> tuple[Ids, Offsets]:
        """Flat ids (int32) of many texts and offsets (n_texts + 1,), int64.

        Text i is ids[offsets[i]:offsets[i + 1]]. The result does not depend on `threads`.
        """
        listed = texts if isinstance(texts, list) else list(texts)
        core = self._core(parse_special)
        if self.engine == "core":
            ids, offsets = core.encode_batch(listed, threads)
        else:
            parts = [self._pipeline.encode(core, text, parse_special) for text in listed]
            ids, offsets = _join(parts)
        if not add_special_tokens:
            return ids, offsets
        before, after = self._template_ids()
        return _join(
            [
                np.concatenate([before, ids[offsets[i] : offsets[i + 1]], after])
                for i in range(len(listed))
            ]
        )

    def decode(self, ids: Sequence[int] | NDArray[Any], *, skip_special_tokens: bool = False) -> str:
        """Text of ids; bytes that are not whole UTF-8 become U+FFFD, as in `tokenizers`."""
        return str(
            self.tokenizer.backend.decode(
                np.asarray(ids).tolist(), skip_special_tokens=skip_special_tokens
            )
        )

    def id_to_token(self, token_id: int) -> str:
        """The token of an id as `tokenizer.json` spells it; KeyError for an id without a token."""
        token = self.tokenizer.backend.id_to_token(int(token_id))
        if token is None:
            raise KeyError(f"no token has the id {token_id}")
        return str(token)

    def _core(self, parse_special: bool) -> _core.TextEncoder:
        if parse_special:
            return self._with_special
        if self._without_special is None:
            plain = tuple(token for token in self.tokenizer.added_tokens if not token.special)
            self._without_special = self._pipeline.text_encoder(plain)
        return self._without_special

    def _template_ids(self) -> tuple[Ids, Ids]:
        """Ids that the post-processor puts before and after a text."""
        if self._template is None:
            encoding = self.tokenizer.backend.encode("a", add_special_tokens=True)
            mask = encoding.special_tokens_mask
            text_at = mask.index(0)
            text_end = len(mask) - mask[::-1].index(0)
            self._template = (
                np.array(encoding.ids[:text_at], dtype=np.int32),
                np.array(encoding.ids[text_end:], dtype=np.int32),
            )
        return self._template


def _join(parts: list[Ids]) -> tuple[Ids, Offsets]:
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32), offsets


class _Pipeline:
    """How one tokenizer's components are run."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.normalizer: Normalizer | None = None  # run by `tokenizers`, part by part
        self.pre_tokenizer: PreTokenizer | None = None  # likewise
        self.ascii_safe = False
        self.engine: Engine = "core"
        self.encoder: _core.Encoder | None = None
        self.prepend = self.space_becomes = ""
        self.scanner: _core.PreTokenizer | None = None
        if _needs_tokenizers(tokenizer):
            self.engine = "tokenizers"
            return
        self._plan_normalizer(tokenizer.normalizer)
        pattern = patterns.from_spec(tokenizer.pre_tokenizer)
        if tokenizer.pre_tokenizer is None:
            self.scanner = _core.PreTokenizer(_core.Pattern.WHOLE)
        elif pattern is not None:
            self.scanner = patterns.compile_pattern(pattern)
            if self.scanner is None:
                self.pre_tokenizer = patterns.to_tokenizers(pattern)
        else:
            self.pre_tokenizer = tokenizer.backend.pre_tokenizer
        if self.normalizer is not None or self.pre_tokenizer is not None:
            self.engine = "core behind tokenizers"
        self.encoder = compile_model(tokenizer.model, byte_level=pattern is not None)

    def _plan_normalizer(self, spec: Spec | None) -> None:
        simple = simple_normalizer(spec)
        if simple is not None:
            self.prepend, self.space_becomes = simple
        else:
            self.normalizer = self.tokenizer.backend.normalizer
            self.ascii_safe = spec is not None and spec["type"] in _ASCII_SAFE

    def text_encoder(self, added: tuple[AddedToken, ...]) -> _core.TextEncoder | None:
        if self.encoder is None:
            return None

        def core(tokens: Iterable[AddedToken]) -> list[_core.AddedToken]:
            return [_core.AddedToken(t.content, t.id, t.lstrip, t.rstrip) for t in tokens]

        return _core.TextEncoder(
            self.encoder,
            raw_tokens=core(token for token in added if not token.normalized),
            normalized_tokens=core(token for token in added if token.normalized),
            prepend=self.prepend,
            space_becomes=self.space_becomes,
            pre_tokenizer=self.scanner,
        )

    def encode(self, core: _core.TextEncoder | None, text: str, parse_special: bool) -> Ids:
        if core is None:
            backend = self.tokenizer.backend
            backend.encode_special_tokens = not parse_special
            return np.array(backend.encode(text, add_special_tokens=False).ids, dtype=np.int32)
        if self.engine == "core":
            return core.encode(text)
        parts: list[Ids] = []
        for part, token_id in core.split_added(text, self.normalizer is None):
            if token_id is not None:
                parts.append(np.array([token_id], dtype=np.int32))
                continue
            normalized = part
            if self.normalizer is not None and not (self.ascii_safe and part.isascii()):
                normalized = self.normalizer.normalize_str(part)
            if self.pre_tokenizer is None:
                parts.append(core.encode_normalized(normalized))
            elif normalized:
                pieces = self.pre_tokenizer.pre_tokenize_str(normalized)
                parts.append(core.encode_pieces([piece for piece, _ in pieces]))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)


def _needs_tokenizers(tokenizer: Tokenizer) -> bool:
    """Whether something in it is beyond the core: rare kinds of models and added tokens."""
    model = tokenizer.model
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        return True
    if any(token.single_word for token in tokenizer.added_tokens):
        return True
    has_normalized = any(token.normalized for token in tokenizer.added_tokens)
    if has_normalized and simple_normalizer(tokenizer.normalizer) != ("", ""):
        return True  # such tokens are matched in their normalized form
    # Metaspace with prepend_scheme "first" looks at where in the text a part began.
    return "Metaspace" in str(tokenizer.pre_tokenizer)


def simple_normalizer(spec: Spec | None) -> tuple[str, str] | None:
    """(prepend, what a space becomes) where the core can normalize; None where it cannot."""
    if spec is None:
        return "", ""
    steps = spec.get("normalizers", []) if spec["type"] == "Sequence" else [spec]
    prepend = space_becomes = ""
    for step in steps:
        if step["type"] == "Prepend" and not prepend and not space_becomes:
            prepend = step["prepend"]
        elif (
            step["type"] == "Replace"
            and step["pattern"] == {"String": " "}
            and not space_becomes
            and " " not in prepend
        ):
            space_becomes = step["content"]
        else:
            return None
        if not (prepend or space_becomes):
            return None  # an empty replacement would delete spaces
    return prepend, space_becomes


def compile_model(model: BpeModel, *, byte_level: bool) -> _core.Encoder:
    """The core's encoder for a model; `byte_level`: pieces reach it as text, not as images."""
    ids = np.fromiter(model.vocab.values(), dtype=np.uint32, count=len(model.vocab))
    tokens = list(map(_image_bytes if byte_level else str.encode, model.vocab))
    vocab = model.vocab
    merges = np.array(
        [(vocab[left], vocab[right], vocab[left + right]) for left, right in model.merges],
        dtype=np.uint32,
    ).reshape(-1, 3)
    space = " " if byte_level else "▁" if "▁" in vocab else "Ġ" if "Ġ" in vocab else " "
    return _core.Encoder(
        tokens,
        ids,
        merges,
        byte_level=byte_level,
        ignore_merges=model.ignore_merges,
        byte_fallback=model.byte_fallback,
        unk=None if model.unk_token is None else vocab[model.unk_token],
        fuse_unk=model.fuse_unk,
        space=space,
    )


def compile_merges(tokens: list[bytes], merges: NDArray[np.uint32]) -> _core.Encoder:
    """The core's encoder for merges that are just learned: `tokens` by id, merges (n, 3) ids."""
    return _core.Encoder(tokens, np.arange(len(tokens), dtype=np.uint32), merges)


def _image_bytes(token: str) -> bytes:
    """Bytes of a byte-level token; a string that no bytes spell is never found: 0xFF…"""
    try:
        return byte_level.to_bytes(token)
    except KeyError:
        return b"\xff" + token.encode()
