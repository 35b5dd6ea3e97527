"""Formats are told apart by content, whatever the file is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json


def test_every_format_is_recognised_under_a_misleading_name(
    small: Tokenizer,
    ranks_file: bytes,
    tekken_file: dict[str, Any],
    sentencepiece_file: Callable[..., bytes],
    gguf_file: Callable[..., bytes],
    gguf_metadata: dict[str, Any],
    tmp_path: Path,
) -> None:
    file = tmp_path / "tokenizer.model"
    sizes = []
    for data in (
        to_json(small).encode(),
        b"\xef\xbb\xbf  " + to_json(small).encode(),
        json.dumps(tekken_file).encode(),
        sentencepiece_file(),
        gguf_file(gguf_metadata),
    ):
        file.write_bytes(data)
        sizes.append(load_tokenizer(file).vocab_size)
    file.write_bytes(ranks_file)
    sizes.append(load_tokenizer(file, pattern="gpt2").vocab_size)
    assert sizes == [260, 260, 261, 6, 259, 259]


def test_a_folder_with_only_a_model_file_is_loaded(
    sentencepiece_file: Callable[..., bytes], tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_file())
    tokenizer = load_tokenizer(tmp_path)
    assert (tokenizer.vocab_size, tokenizer.name) == (6, tmp_path.name)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"hello world, this is text", "this is none of"),
        (b"\x89PNG\r\n", "this is none of"),
        (b"{", "not JSON"),
        (b"{}", "no `model` object"),
        (b"[]", "no object"),
        (b"{\xff}", "not JSON in UTF-8"),
        (b"\n\n\n", "not a SentencePiece model"),
        (b"GGUF", "cut short"),
        (b"YQ== 0\n", "--pattern"),
    ],
)
def test_unusable_files_are_refused_by_name(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(data)
    with pytest.raises(InvalidTokenizerError, match=message) as caught:
        load_tokenizer(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pattern_is_refused_where_the_file_brings_its_own(
    small: Tokenizer, tmp_path: Path
) -> None:
    folder = small.save_pretrained(tmp_path / "out")
    for source in (folder, folder / "tokenizer.json"):
        with pytest.raises(InvalidTokenizerError, match="--pattern does not fit"):
            load_tokenizer(source, pattern="gpt2")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenizerError, match="holds no tokenizer"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["nowhere.json", "/nowhere/at/all", "a/b/c", "./x", "x" * 5000])
def test_a_missing_path_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="no such file or folder; check the path"):
        load_tokenizer(name)


def test_offline_a_hub_name_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("offline\nmode")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(FileNotFoundError, match="the Hub does not give it: offline mode"):
        load_tokenizer("nobody/nothing")
