"""The vocabulary of a GGUF file as a Tokenizer.

Owns the layout of the header (github.com/ggml-org/ggml/blob/master/docs/gguf.md; versions 2 and 3,
little-endian), read with every length checked against the file's end, and what the
`tokenizer.ggml.*` keys mean. Tensors are never touched. Written here because a vocabulary of 256
thousand tokens takes the gguf package 13 seconds, and one second here.

Byte-level BPE ("gpt2") only *names* its pre-tokenizer in `tokenizer.ggml.pre`: the names below are
llama.cpp's, with the normalizer and merge skipping of the vendor's own tokenizer.json. "llama" and
"gemma4" are SentencePiece-like.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import components
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.sentencepiece import Piece, PieceType, Settings, from_pieces
from vocabshift.tokenizer.model import BpeModel, Merge
from vocabshift.tokenizer.tokenizer import Tokenizer

MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?QqdX", strict=False))
"""struct code by GGUF type: u8 i8 u16 i16 u32 i32 f32 bool u64 i64 f64."""
_MAX_KEYS = 1 << 16


def read_metadata(data: bytes, *, wanted: Callable[[str], bool]) -> dict[str, Any]:
    """The metadata of a GGUF file; the values of keys that are not `wanted` are skipped.

    `data` may be a memory map: only the header is read.
    """
    reader = _Reader(data)
    if data[:4] != MAGIC:
        raise InvalidTokenizerError("this is no GGUF file")
    reader.at = 4
    version = reader.scalar("I")
    if version not in (2, 3):
        raise InvalidTokenizerError(f"GGUF version {version} is not read; versions 2 and 3 are")
    _tensor_count, key_count = reader.scalar("Q"), reader.scalar("Q")
    if key_count > _MAX_KEYS:
        raise InvalidTokenizerError(f"the GGUF header claims {key_count} keys; it is damaged")
    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = reader.string()
        value = reader.value(reader.scalar("I"), keep=wanted(key))
        if wanted(key):
            metadata[key] = value
    return metadata


class _Reader:
    """A place in the data; every read checks that so many bytes are left."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)
        self.at = 0

    def take(self, size: int) -> int:
        """Step over `size` bytes and return where they begin."""
        start = self.at
        if size > self.end - start:
            raise InvalidTokenizerError(
                f"the GGUF file is cut short or damaged: {size} bytes are said to follow "
                f"byte {start} of {self.end}"
            )
        self.at = start + size
        return start

    def scalar(self, code: str) -> Any:
        start = self.take(struct.calcsize(code))
        return struct.unpack_from("<" + code, self.data, start)[0]

    def string(self) -> str:
        start = self.take(self.scalar("Q"))
        try:
            return self.data[start : self.at].decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTokenizerError(
                f"the string at byte {start} of the GGUF file is not UTF-8: {error.reason}"
            ) from None

    def value(self, kind: int, *, keep: bool, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY and depth == 0:
            return self.array(keep=keep)
        if kind not in _SCALARS:
            raise InvalidTokenizerError(f"the GGUF file holds a value of unknown type {kind}")
        return self.scalar(_SCALARS[kind])

    def array(self, *, keep: bool) -> list[Any]:
        kind, count = self.scalar("I"), self.scalar("Q")
        if kind == _STRING:
            return self.strings(count)
        if kind not in _SCALARS:
            raise InvalidTokenizerError(f"the GGUF file holds an array of unknown type {kind}")
        code = _SCALARS[kind]
        start = self.take(count * struct.calcsize(code))
        return list(struct.unpack_from(f"<{count}{code}", self.data, start)) if keep else []

    def strings(self, count: int) -> list[str]:
        # A hot loop: 500 thousand merges. Each string takes at least the 8 bytes of its length.
        if count * 8 > self.end - self.at:
            self.take(count * 8)
        data, unpack, at, end = self.data, struct.Struct("<Q").unpack_from, self.at, self.end
        found = []
        try:
            for _ in range(count):
                (size,) = unpack(data, at)
                at += 8 + size
                if at > end:
                    self.at = end
                    self.take(size)
                found.append(data[at - size : at].decode("utf-8"))
        except (struct.error, UnicodeDecodeError) as error:
            raise InvalidTokenizerError(
                f"a string list of the GGUF file is damaged: {error}"
            ) from None
        self.at = at
        return found


_ROLES = {"unk": "unknown", "pad": "padding", "sep": "seperator"}  # GGUF's own spelling
_ROLE_KEYS = {
    role: f"tokenizer.ggml.{_ROLES.get(role, role)}_token_id"
    for role in ("bos", "eos", "unk", "pad", "sep", "cls", "mask")
}
_CUT_OUT = {PieceType.UNKNOWN, PieceType.CONTROL, PieceType.USER_DEFINED}


class _Pre(NamedTuple):
    """The meaning of a name in `tokenizer.ggml.pre`."""

    pattern: str
    split_digits: bool = False  # each digit alone, before the pattern
    ignore_merges: bool = False
    normalizer: str | None = None


_LLAMA3 = _Pre("cl100k", ignore_merges=True)
_GPT2 = _Pre("gpt2")
_DIGITS = _Pre("gpt2", split_digits=True)
_QWEN2 = _Pre("qwen2", normalizer="NFC")
_PRE = {
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"), _LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe"), _Pre("cl100k")),
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais", "roberta-bpe"), _GPT2),
    **dict.fromkeys(("starcoder", "refact", "smollm", "codeshell"), _DIGITS),
    "command-r": _DIGITS._replace(normalizer="NFC"),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), _QWEN2),
    "stablelm2": _Pre("qwen2"),
    "gpt-4o": _Pre("o200k"),
    "llama4": _Pre("o200k", ignore_merges=True),
    "tekken": _Pre("tekken", ignore_merges=True),
    "deepseek-v3": _Pre("deepseek"),
}


def from_gguf(data: bytes, *, pattern: str | None = None, name: str = "tokenizer") -> Tokenizer:
    """The Tokenizer of a GGUF file; `pattern` (name or regex) is needed for unknown names."""
    keys = read_metadata(data, wanted=lambda key: key.startswith("tokenizer."))
    kind = keys.get("tokenizer.ggml.model")
    pieces = _pieces(keys)
    if kind == "gpt2":
        return _byte_level(keys, pieces, pattern, name)
    if kind in ("llama", "gemma4"):
        if pattern is not None:
            raise InvalidTokenizerError(
                "--pattern does not fit: this GGUF vocabulary is SentencePiece's and has none"
            )
        return _sentencepiece(keys, pieces, name)
    raise InvalidTokenizerError(
        f"the GGUF vocabulary is of kind {kind!r}; gpt2, llama and gemma4 (BPE) are read"
    )


def _byte_level(
    keys: Mapping[str, Any], pieces: list[Piece], pattern: str | None, name: str
) -> Tokenizer:
    from vocabshift.text import patterns

    pre_name = keys.get("tokenizer.ggml.pre")
    pre = _PRE.get(pre_name) if isinstance(pre_name, str) else None
    if pre is None and pattern is None:
        raise InvalidTokenizerError(
            f"the GGUF file names the pre-tokenizer {pre_name!r}, which is not known here; name "
            "its pattern with --pattern (pattern=), for example cl100k or gpt2"
        )
    try:
        steps = patterns.get_pattern(pattern or (pre.pattern if pre else ""))
    except ValueError as error:
        raise InvalidTokenizerError(f"--pattern: {error}") from None
    if pattern is None and pre and pre.split_digits:
        steps = (patterns.Split(r"\p{N}"), *steps)
    merges = _merges(keys)
    if merges is None:
        raise InvalidTokenizerError("the GGUF vocabulary is BPE and has no merges")
    vocab = _vocab(pieces)
    roles = _roles(keys, pieces)
    bos = roles.get("bos") if keys.get("tokenizer.ggml.add_bos_token") else None
    return Tokenizer(
        BpeModel(vocab, tuple(merges), ignore_merges=bool(pre and pre.ignore_merges)),
        normalizer={"type": pre.normalizer} if pre and pre.normalizer else None,
        pre_tokenizer=patterns.to_spec(steps),
        post_processor=components.byte_level_processor((bos, vocab[bos]) if bos else None),
        decoder=components.BYTE_LEVEL_DECODER,
        added_tokens=tuple(
            AddedToken(piece.text, token_id, special=piece.type != PieceType.USER_DEFINED)
            for token_id, piece in enumerate(pieces)
            if piece.type in _CUT_OUT
        ),
        config={f"{role}_token": text for role, text in roles.items()},
        chat_template=_template(keys),
        name=name,
    )


def _sentencepiece(keys: Mapping[str, Any], pieces: list[Piece], name: str) -> Tokenizer:
    """Scores become merges unless the file has them (gemma4); nothing is normalized but " "."""
    ids = {role: keys[key] for role, key in _ROLE_KEYS.items() if key in keys}
    _roles(keys, pieces)  # checks them
    settings = Settings(
        roles=ids,
        byte_fallback=any(piece.type == PieceType.BYTE for piece in pieces),
        add_dummy_prefix=bool(keys.get("tokenizer.ggml.add_space_prefix", True)),
        remove_extra_whitespaces=bool(keys.get("tokenizer.ggml.remove_extra_whitespaces", False)),
        add_bos=bool(keys.get("tokenizer.ggml.add_bos_token", True)),
    )
    merges = _merges(keys)
    return from_pieces(pieces, settings, merges=merges, chat_template=_template(keys), name=name)


def _pieces(keys: Mapping[str, Any]) -> list[Piece]:
    tokens = keys.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not isinstance(tokens[0], str):
        raise InvalidTokenizerError("the GGUF file holds no vocabulary (tokenizer.ggml.tokens)")
    types = keys.get("tokenizer.ggml.token_type") or [int(PieceType.NORMAL)] * len(tokens)
    scores = keys.get("tokenizer.ggml.scores") or [0.0] * len(tokens)
    if not isinstance(types, list) or not isinstance(scores, list):
        raise InvalidTokenizerError("the token types or scores of the GGUF file are no lists")
    if not len(tokens) == len(types) == len(scores):
        raise InvalidTokenizerError(
            f"the GGUF file holds {len(tokens)} tokens, {len(types)} types, {len(scores)} scores"
        )
    return [Piece(*entry) for entry in zip(tokens, scores, types, strict=True)]


def _vocab(pieces: list[Piece]) -> dict[str, int]:
    vocab = {piece.text: token_id for token_id, piece in enumerate(pieces)}
    if len(vocab) != len(pieces):
        raise InvalidTokenizerError(
            f"{len(pieces) - len(vocab)} of the {len(pieces)} GGUF tokens are repeated"
        )
    return vocab


def _merges(keys: Mapping[str, Any]) -> list[Merge] | None:
    lines = keys.get("tokenizer.ggml.merges")
    if lines is None:
        return None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise InvalidTokenizerError("the merges of the GGUF file are no strings")
    merges = []
    for rank, line in enumerate(lines):
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise InvalidTokenizerError(f"merge {rank} of the GGUF file is {line!r}")
        merges.append((left, right))
    return merges


def _roles(keys: Mapping[str, Any], pieces: list[Piece]) -> dict[str, str]:
    roles = {}
    for role, key in _ROLE_KEYS.items():
        token_id = keys.get(key)
        if token_id is None:
            continue
        if type(token_id) is not int or not 0 <= token_id < len(pieces):
            raise InvalidTokenizerError(f"{key} of the GGUF file is {token_id!r}, no token's id")
        roles[role] = pieces[token_id].text
    return roles


def _template(keys: Mapping[str, Any]) -> str | None:
    template = keys.get("tokenizer.chat_template")
    return template if isinstance(template, str) else None
