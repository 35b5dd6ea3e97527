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


@pytest.mark.parametrize(
    ("pre", "text", "pieces"),
    [
        ("smollm", "a 12's", ["a", "Ġ", "1", "2", "'s"]),
        ("gpt-2", "a 12's", ["a", "Ġ12", "'s"]),
        ("llama-bpe", "1234 IT'S", ["123", "4", "ĠIT", "'S"]),
        ("qwen2", "12 कि", ["1", "2", "Ġà¤ķ", "à¤¿"]),
        ("qwen35", "12 कि", ["1", "2", "Ġà¤ķà¤¿"]),
        ("tekken", "12 It's", ["1", "2", "ĠIt", "'s"]),
        ("llama4", "1234 It's", ["123", "4", "ĠIt's"]),
        ("deepseek-llm", "don't 12\n", ["don", "'", "t", "Ġ", "12", "Ċ"]),
        ("deepseek-coder", "don't 12\n", ["don", "'", "t", "Ġ", "1", "2", "Ċ"]),
        ("deepseek-v3", "don't 1234", ["don", "'t", "Ġ", "123", "4"]),
        ("falcon", "a 1234!? b", ["a", "Ġ", "123", "4", "!?", "Ġb"]),
        ("starcoder", "a 12", ["a", "Ġ", "1", "2"]),
        ("superbpe", "two words 1234567", ["twoĠwordsĠ", "1", "234", "567"]),
        ("bloom", "a b, c", ["a", "Ġb", ",", "Ġc"]),
        ("viking", "a b12", ["a", "Ġb", "1", "2"]),
        ("seed-coder", "12!\n", ["1", "2", "!", "Ċ"]),
        ("bailingmoe", "12!\n\n", ["1", "2", "!ĊĊ"]),
        ("tiny_aya", "12345 It's", ["12", "345", "ĠIt's"]),
        ("granite-embed-multi-97m", "1234 aB कि", ["123", "4", "Ġa", "B", "Ġà¤ķà¤¿"]),
        ("exaone-moe", "two words 12", ["twoĠwords", "Ġ", "1", "2"]),
    ],
)
def test_named_pre_tokenizers(
    gguf_file: Write, gguf_metadata: dict[str, Any], pre: str, text: str, pieces: list[str]
) -> None:
    """Cut by hand, by the regexes of llama.cpp's llama-vocab.cpp."""
    backend = from_gguf(gguf_file(gguf_metadata | {"tokenizer.ggml.pre": pre})).backend
    assert pieces == [piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str(text)]


def test_tokens_that_the_file_adds(gguf_file: Write, gguf_metadata: dict[str, Any]) -> None:
    """BOS by default where llama.cpp adds it by default; EOS where the file says so."""

    def ids(**changes: Any) -> list[int]:
        keys = {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
        metadata = {key: v for key, v in (gguf_metadata | keys).items() if v is not None}
        return list(from_gguf(gguf_file(metadata)).backend.encode("ab").ids)

    assert [0, 258] == ids()
    assert [0, 258] == ids(add_bos_token=None)
    assert [258] == ids(add_bos_token=None, pre="smollm")
    assert [258] == ids(add_bos_token=False)
    assert [0, 258, 1] == ids(eos_token_id=1, add_eos_token=True)
    assert [258, 1] == ids(add_bos_token=False, eos_token_id=1, add_eos_token=True)
    assert [0, 258] == ids(eos_token_id=1)


def test_filled_up_rows_are_no_tokens(gguf_file: Write, gguf_metadata: dict[str, Any]) -> None:
    tokens, types = (gguf_metadata[f"tokenizer.ggml.{key}"] for key in ("tokens", "token_type"))
    changes = {
        "tokenizer.ggml.tokens": [*tokens, "[PAD259]", "[PAD260]"],
        "tokenizer.ggml.token_type": [*types, 5, 5],
    }
    assert 259 == from_gguf(gguf_file(gguf_metadata | changes)).row_count
    changes["tokenizer.ggml.padding_token_id"] = 259  # a role makes it a token
    tokenizer = from_gguf(gguf_file(gguf_metadata | changes))
    assert (260, "[PAD259]") == (tokenizer.row_count, tokenizer.config["pad_token"])


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
