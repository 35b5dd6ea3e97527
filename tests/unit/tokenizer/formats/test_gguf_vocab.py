"""GGUF vocabularies: what the header's keys mean, and headers that lie."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.gguf import from_gguf

Write = Callable[[dict[str, Any]], bytes]


def test_byte_level_vocabulary(gguf_file: Write, gguf_metadata: dict[str, Any]) -> None:
    tokenizer = from_gguf(gguf_file(gguf_metadata))
    assert tokenizer.model.merges == (("a", "b"),)
    assert tokenizer.model.ignore_merges
    added = [(token.content, token.id, token.special) for token in tokenizer.added_tokens]
    assert added == [("<s>", 0, True), ("<tool>", 1, False)]
    assert tokenizer.backend.encode("ab<tool>").ids == [0, 258, 1]


def test_command_r_splits_digits_and_composes(
    gguf_file: Write, gguf_metadata: dict[str, Any]
) -> None:
    tokenizer = from_gguf(gguf_file(gguf_metadata | {"tokenizer.ggml.pre": "command-r"}))
    assert tokenizer.normalizer == {"type": "NFC"}
    backend = tokenizer.backend
    pieces = [piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str("a 12")]
    assert pieces == ["a", "Ġ", "1", "2"]


def test_unknown_pre_tokenizer_needs_a_pattern(
    gguf_file: Write, gguf_metadata: dict[str, Any]
) -> None:
    data = gguf_file(gguf_metadata | {"tokenizer.ggml.pre": "brand-new"})
    with pytest.raises(InvalidTokenizerError, match=r"'brand-new'.*--pattern"):
        from_gguf(data)
    assert from_gguf(data, pattern="gpt2").backend.encode("ab").ids == [0, 258]


def test_sentencepiece_like_vocabulary_takes_its_merges_from_scores(gguf_file: Write) -> None:
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "▁", "a", "▁a", "<0x0A>"],
        "tokenizer.ggml.scores": [0.0, 0.0, -2.0, -3.0, -1.0, 0.0],
        "tokenizer.ggml.token_type": [2, 3, 1, 1, 1, 6],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    tokenizer = from_gguf(gguf_file(metadata))
    assert tokenizer.backend.encode("a a\n").ids == [1, 4, 4, 5]
    without_prefix = from_gguf(gguf_file(metadata | {"tokenizer.ggml.add_space_prefix": False}))
    assert without_prefix.backend.encode("a a").ids == [1, 3, 4]
    with pytest.raises(InvalidTokenizerError, match="--pattern does not fit"):
        from_gguf(gguf_file(metadata), pattern="gpt2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer.ggml.model": "bert"}, "of kind 'bert'"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "holds no vocabulary"),
        ({"tokenizer.ggml.token_type": [1, 2]}, "259 tokens, 2 types"),
        ({"tokenizer.ggml.merges": ["ab"]}, "merge 0 of the GGUF file is 'ab'"),
        ({"tokenizer.ggml.merges": ["a b", "b z"]}, "merge 1 joins 'b' and 'z'"),
        ({"tokenizer.ggml.merges": [1]}, "are no strings"),
        ({"tokenizer.ggml.bos_token_id": 259}, "is 259, no token's id"),
        ({"tokenizer.ggml.tokens": ["x"] * 259}, "258 of the 259 GGUF tokens are repeated"),
    ],
)
def test_unsound_vocabularies_are_refused(
    gguf_file: Write, gguf_metadata: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTokenizerError, match=message):
        from_gguf(gguf_file(gguf_metadata | changes))


def test_every_truncation_is_refused(gguf_file: Write, gguf_metadata: dict[str, Any]) -> None:
    data = gguf_file(gguf_metadata)
    for end in range(4, len(data), 7):
        with pytest.raises(InvalidTokenizerError):
            from_gguf(data[:end])


_HUGE = struct.pack("<Q", 2**63)
_KEY = struct.pack("<Q", 3) + b"tok"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (struct.pack("<IQQ", 1, 0, 0), "version 1 is not read"),
        (struct.pack("<IQQ", 3, 0, 2**60), "claims"),
        (struct.pack("<IQQ", 3, 0, 1) + _HUGE, "cut short"),
        (struct.pack("<IQQ", 3, 0, 1) + _KEY + struct.pack("<I", 8) + _HUGE, "cut short"),
        (struct.pack("<IQQ", 3, 0, 1) + _KEY + struct.pack("<II", 9, 8) + _HUGE, "cut short"),
        (struct.pack("<IQQ", 3, 0, 1) + _KEY + struct.pack("<II", 9, 4) + _HUGE, "cut short"),
        (struct.pack("<IQQ", 3, 0, 1) + _KEY + struct.pack("<II", 9, 9) + _HUGE, "unknown type 9"),
        (struct.pack("<IQQ", 3, 0, 1) + _KEY + struct.pack("<I", 77), "unknown type 77"),
    ],
)
def test_absurd_headers_are_refused(header: bytes, message: str) -> None:
    with pytest.raises(InvalidTokenizerError, match=message):
        from_gguf(b"GGUF" + header)
