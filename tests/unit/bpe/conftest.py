"""Small tokenizers in every file format, written by hand."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.bpe import byte_level
from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.tokenizer import AddedToken, Tokenizer
from vocabshift.text import patterns

MERGES = (("a", "b"), ("ab", "c"), ("Ġ", "ab"), ("à", "¤"))


@pytest.fixture
def small() -> Tokenizer:
    """All bytes, four merges, two special tokens behind them."""
    tokens = [*byte_level.ALPHABET, *(left + right for left, right in MERGES)]
    size = len(tokens)
    return Tokenizer(
        BpeModel({token: token_id for token_id, token in enumerate(tokens)}, MERGES),
        pre_tokenizer=patterns.to_spec(patterns.get_pattern("o200k")),
        decoder={"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True),
        added_tokens=(AddedToken("<s>", size), AddedToken("<pad>", size + 1, special=False)),
        config={"bos_token": "<s>", "model_max_length": 512},
        chat_template="{{ messages }}",
    )


@pytest.fixture
def ranks_file() -> bytes:
    """A rank file that no table knows."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b" ab"]
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    return b"".join(lines)


@pytest.fixture
def tekken_file() -> dict[str, Any]:
    """A tekken file with two special tokens; of four longer tokens the last is cut off."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b" ab", b"zz"]
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(tokens)
    ]
    config = {
        "pattern": patterns.TEKKEN,
        "num_vocab_tokens": 260,
        "default_vocab_size": 261,
        "default_num_special_tokens": 2,
        "version": "v3",
    }
    return {"config": config, "vocab": vocab}


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One protobuf field."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


@pytest.fixture
def sentencepiece_file() -> Callable[..., bytes]:
    """Writes a SentencePiece model of six pieces; the arguments change its specs."""

    def write(model_type: int = 2, *, extra: tuple[tuple[str, float, int], ...] = ()) -> bytes:
        pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("▁a", -0.0, 1)]
        pieces += [("▁", -1.0, 1), ("a", -2.0, 1), *extra]
        data = b"".join(
            field(1, field(1, text) + field(2, score) + field(3, kind))
            for text, score, kind in pieces
        )
        return data + field(2, field(3, model_type)) + field(3, field(1, "identity") + field(4, 0))

    return write


def _gguf_value(value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, struct.pack("<Q", len(value.encode())) + value.encode()
    kinds_and_data = [_gguf_value(item) for item in value]
    data = b"".join(item for _, item in kinds_and_data)
    return 9, struct.pack("<IQ", kinds_and_data[0][0], len(value)) + data


@pytest.fixture
def gguf_file() -> Callable[..., bytes]:
    """Writes a GGUF file of these metadata."""

    def write(metadata: dict[str, Any]) -> bytes:
        data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata))
        for key, value in metadata.items():
            kind, body = _gguf_value(value)
            data += struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + body
        return data

    return write


@pytest.fixture
def gguf_metadata() -> dict[str, Any]:
    """A byte-level vocabulary with two special tokens in front."""
    tokens = ["<s>", "<tool>", *byte_level.ALPHABET, "ab"]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 4] + [1] * 257,
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
    }


@pytest.fixture
def as_object() -> Callable[[Tokenizer], dict[str, Any]]:
    """tokenizer.json of a tokenizer, parsed, to be damaged."""
    from vocabshift.bpe.tokenizer_json import to_json

    return lambda tokenizer: json.loads(to_json(tokenizer))
