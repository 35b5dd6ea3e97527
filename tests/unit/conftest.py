"""Small tokenizers: of both spellings, and in every file format, written by hand."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.text import patterns, regexes
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import metaspace_decoder, space_to_metaspace
from vocabshift.tokenizer.model import BpeModel, Merge
from vocabshift.tokenizer.tokenizer import Tokenizer

BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}
MakeTokenizer = Callable[..., Tokenizer]


def left_to_right(token: str) -> list[Merge]:
    """The merges that build a token character by character."""
    return [(token[:end], token[end]) for end in range(1, len(token))]


@pytest.fixture
def make_byte_level() -> MakeTokenizer:
    """From tokens: the 256 bytes, all their beginnings and they, then special tokens."""

    def make(*texts: str | bytes, specials: tuple[str, ...] = (), **changes: Any) -> Tokenizer:
        data = [text.encode() if isinstance(text, str) else text for text in texts]
        pairs = [pair for token in map(byte_level.to_image, data) for pair in left_to_right(token)]
        pairs = list(dict.fromkeys(pairs))
        tokens = [*byte_level.ALPHABET, *dict.fromkeys("".join(pair) for pair in pairs)]
        vocab = {token: token_id for token_id, token in enumerate(tokens)}
        added = tuple(AddedToken(text, len(vocab) + i) for i, text in enumerate(specials))
        parts = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL, "added_tokens": added}
        return Tokenizer(BpeModel(vocab, tuple(pairs)), **(parts | changes))

    return make


@pytest.fixture
def make_metaspace() -> MakeTokenizer:
    """From tokens over "▁abcA": <unk> <s> </s>, 256 byte pieces, characters, tokens."""

    def make(*texts: str, **changes: Any) -> Tokenizer:
        pairs = list(dict.fromkeys(pair for token in texts for pair in left_to_right(token)))
        roles = ["<unk>", "<s>", "</s>"]
        lone = [f"<0x{byte:02X}>" for byte in range(256)]
        tokens = [*roles, *lone, *"▁abcA", *dict.fromkeys("".join(pair) for pair in pairs)]
        model = BpeModel(
            {token: token_id for token_id, token in enumerate(tokens)},
            tuple(pairs),
            byte_fallback=True,
            unk_token="<unk>",
            fuse_unk=True,
        )
        parts = {
            "normalizer": space_to_metaspace(add_prefix=True),
            "decoder": metaspace_decoder(strip_prefix=True),
            "added_tokens": tuple(AddedToken(text, i) for i, text in enumerate(roles)),
            "config": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
        }
        return Tokenizer(model, **(parts | changes))

    return make


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
        "pattern": regexes.TEKKEN,
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
    from vocabshift.tokenizer.tokenizer_json import to_json

    return lambda tokenizer: json.loads(to_json(tokenizer))
