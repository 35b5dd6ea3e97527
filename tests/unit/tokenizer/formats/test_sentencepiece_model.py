"""SentencePiece BPE models are read without the sentencepiece package."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats import sentencepiece_proto as protobuf
from vocabshift.tokenizer.formats.sentencepiece import from_model

Write = Callable[..., bytes]


def test_pieces_scores_and_types_become_a_tokenizer(sentencepiece_file: Write) -> None:
    tokenizer = from_model(sentencepiece_file(extra=(("aa", -3.0, 1), ("<t>", 0.0, 4))))
    assert tokenizer.model.merges == (("▁", "a"), ("a", "a"))
    assert tokenizer.config == {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    added = [(token.content, token.special) for token in tokenizer.added_tokens]
    assert added == [("<unk>", True), ("<s>", True), ("</s>", True), ("<t>", False)]
    assert tokenizer.backend.encode("aaa a").tokens == ["<s>", "▁a", "aa", "▁a"]
    assert tokenizer.backend.decode([3, 5, 3]) == "aa a"


def test_extra_whitespace_goes_where_the_model_says_so(sentencepiece_file: Write) -> None:
    model = sentencepiece_file() + b"\x1a\x02\x20\x01"  # remove_extra_whitespaces: true
    tokens = from_model(model).backend.encode("  a   a ", add_special_tokens=False).tokens
    assert tokens == ["▁a", "▁a"]


@pytest.mark.parametrize(("kind", "name"), [(1, "Unigram"), (3, "Word"), (4, "Char"), (9, "9")])
def test_other_models_are_refused(sentencepiece_file: Write, kind: int, name: str) -> None:
    with pytest.raises(InvalidTokenizerError, match=f"of type {name}, not BPE"):
        from_model(sentencepiece_file(kind))


def test_every_truncation_is_refused_or_read(sentencepiece_file: Write) -> None:
    data = sentencepiece_file()
    for end in range(len(data)):
        with pytest.raises(InvalidTokenizerError):
            from_model(data[:end])
        if data[end : end + 1] == b"\x12" and end > 80:  # only the specs are missing
            break


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ((("a", 0.0, 1),), "1 of the 7 pieces are repeated"),
        ((("", 0.0, 1),), "empty text"),
        ((("x", float("nan"), 1),), "not a number"),
    ],
)
def test_unsound_pieces_are_refused(
    sentencepiece_file: Write, extra: tuple[tuple[str, float, int], ...], message: str
) -> None:
    with pytest.raises(InvalidTokenizerError, match=message):
        from_model(sentencepiece_file(extra=extra))


@pytest.mark.parametrize(
    "data", [b"\x00\x00", b"\x0b", b"\x0a\xff", b"\x08", b"\x08" + b"\xff" * 11, b"\x0d\x00"]
)
def test_bad_wire_data_is_an_error(data: bytes) -> None:
    with pytest.raises(protobuf.WireError):
        list(protobuf.fields(data))


def test_varints_and_negative_numbers() -> None:
    assert list(protobuf.fields(b"\x08\x96\x01")) == [(1, 150)]
    assert protobuf.int32((1 << 64) - 1) == -1
