"""`vocabshift encode` from end to end, and what reads its folders."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.cli.main import main

# Written for this test.
ENGLISH = ["The mill stands by the river.", "The river is long!", "</s> ends nothing here."] * 7
HINDI = ["नदी लंबी है।", "चक्की नदी के पास है।"] * 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """en.txt, hi.jsonl and a tokenizer with an EOS."""
    folder = tmp_path_factory.mktemp("encode")
    (folder / "en.txt").write_text("\n".join(ENGLISH), encoding="utf-8")
    rows = (json.dumps({"text": line}, ensure_ascii=False) for line in HINDI)
    (folder / "hi.jsonl").write_text("\n".join(rows), encoding="utf-8")
    words = ["train", "--recipe", "ist", "--corpus", str(folder / "en.txt")]
    words += ["--vocab-size", "300", "--special-tokens", "</s>", "-o", str(folder / "tokenizer")]
    assert 0 == main([*words, "--json"])
    config = folder / "tokenizer" / "tokenizer_config.json"
    settings = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**settings, "eos_token": "</s>"}), encoding="utf-8")
    return folder


@pytest.fixture
def encode(folder: Path, capsys) -> Callable[..., dict[str, Any]]:
    def encode(*words: object, status: int = 0) -> dict[str, Any]:
        code = main(["encode", str(folder / "tokenizer"), *map(str, words), "--json"])
        streams = capsys.readouterr()
        assert status == code, streams.err
        return json.loads(streams.out) if code == 0 else {"error": streams.err}

    return encode


def peer_ids(folder: Path, lines: list[str], *, eos: bool = True) -> list[list[int]]:
    import tokenizers

    backend = tokenizers.Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
    end = [backend.token_to_id("</s>")] if eos else []
    return [backend.encode(line, add_special_tokens=False).ids + end for line in lines]


@pytest.mark.parametrize("form", ["numpy", "arrow", "megatron", "nanotron"])
def test_encode_tells_what_it_made(folder: Path, tmp_path: Path, encode, form: str) -> None:
    out = tmp_path / "out"
    specs = (f"hi={folder / 'hi.jsonl'}", f"en={folder / 'en.txt'}")
    told = encode(*specs, "-o", out, "--format", form, "--shard-tokens", 100, "-j", 2)
    packed = vs.PackedIds.open(out)
    expected = peer_ids(folder, HINDI + ENGLISH)
    assert expected == [packed.document(i).tolist() for i in range(len(packed))]
    n_bytes = sum(len(line.encode()) for line in HINDI + ENGLISH)
    n_tokens = sum(map(len, expected))
    assert (str(out), n_tokens, len(expected), n_bytes, "uint16") == tuple(
        told[key] for key in ("out", "n_tokens", "n_documents", "n_bytes", "dtype")
    )
    assert told["bytes_per_token"] == n_bytes / n_tokens
    assert told["shards"] == len(packed.header["shards"]) > 3
    assert ["hi", "en"] == [row["language"] for row in told["languages"]]
    assert isinstance(told["seconds"], float)


def test_options_reach_the_packing(folder: Path, tmp_path: Path, encode, capsys) -> None:
    specs = (f"hi={folder / 'hi.jsonl'}", f"en={folder / 'en.txt'}")
    encode(*specs, "-o", tmp_path / "en", "--languages", "en", "--eos", "none")
    packed = vs.PackedIds.open(tmp_path / "en")
    assert peer_ids(folder, ENGLISH, eos=False)[0] == packed.document(0).tolist()
    assert (len(ENGLISH), None) == (len(packed), packed.eos_id)
    whole = ("--documents", "file", "--special-as-text", "--eos", "</s>")
    encode(folder / "en.txt", "-o", tmp_path / "file", *whole)
    packed = vs.PackedIds.open(tmp_path / "file")
    assert 1 == len(packed)
    assert 1 == packed.document(0).tolist().count(packed.eos_id)


def test_standard_input_is_encoded(folder: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """It is said that such a run could not be resumed."""
    stdin = SimpleNamespace(buffer=io.BytesIO("\n".join(ENGLISH).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    words = ["encode", str(folder / "tokenizer"), "-", "-o", str(tmp_path / "out")]
    assert 0 == main(words)
    streams = capsys.readouterr()
    assert "could not be resumed: standard input" in streams.err
    assert "between documents" in streams.out
    assert "</s>" in streams.out
    assert len(ENGLISH) == len(vs.PackedIds.open(tmp_path / "out"))


def test_a_tokenizer_without_an_eos_is_told_of(folder: Path, tmp_path: Path, capsys) -> None:
    config = json.loads((folder / "tokenizer" / "tokenizer_config.json").read_text("utf-8"))
    bare = tmp_path / "bare"
    bare.mkdir()
    tokenizer = (folder / "tokenizer" / "tokenizer.json").read_bytes()
    (bare / "tokenizer.json").write_bytes(tokenizer)
    del config["eos_token"]
    (bare / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert 0 == main(["encode", str(bare), str(folder / "en.txt"), "-o", str(tmp_path / "out")])
    streams = capsys.readouterr()
    assert "names no EOS" in streams.err
    assert "between documents" in streams.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("en.txt", "--eos", "<no>"), "'<no>' is no token"),
        (("en=en.txt@2",), "packed once"),
        (("none.txt",), "no such file"),
        (("en.txt", "--shard-tokens", "0"), "whole number of at least 1"),
        (("en.txt", "-o", "tokenizer", "--force"), "would replace the input"),
        (("en.txt", "-o", "en.txt"), "exists already"),
        (("en.txt", "--format", "csv"), "invalid choice"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, tmp_path: Path, monkeypatch, capsys, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    assert 2 == main(["encode", "tokenizer", "-o", str(tmp_path / "out"), *words])
    streams = capsys.readouterr()
    assert "" == streams.out
    assert 1 == streams.err.count("\n")
    assert message in streams.err
    assert before == sorted(folder.rglob("*"))
    assert [] == list(tmp_path.iterdir())


def test_arrow_shards_are_data_sets(folder: Path, tmp_path: Path, encode) -> None:
    """The example of the documentation."""
    datasets = pytest.importorskip("datasets")
    options = ("--format", "arrow", "--shard-tokens", 30)
    encode(folder / "en.txt", "-o", tmp_path / "out", *options)
    files = sorted((tmp_path / "out").glob("ids-*.arrow"))
    assert len(files) > 1
    parts = [datasets.Dataset.from_file(str(file)) for file in files]
    train = datasets.concatenate_datasets(parts)
    assert peer_ids(folder, ENGLISH) == train["input_ids"][:]
    assert ["input_ids"] == train.column_names
    torch = pytest.importorskip("torch")
    assert torch.int64 == train.with_format("torch")[0]["input_ids"].dtype


def test_arrow_shards_are_data_sets_of_packed_ids(folder: Path, tmp_path: Path, encode) -> None:
    """Rows of one length, from either format, without a copy of the corpus in memory."""
    datasets = pytest.importorskip("datasets")
    encode(folder / "en.txt", "-o", tmp_path / "out")
    packed = vs.PackedIds.open(tmp_path / "out")

    def rows():
        for block in packed.blocks(16):
            yield {"input_ids": block[:-1].tolist(), "labels": block[1:].tolist()}

    train = datasets.Dataset.from_generator(rows, cache_dir=str(tmp_path / "cache"))
    stream = packed.tokens(0, packed.n_tokens).tolist()
    assert stream[1:] == [token for row in train["labels"] for token in row]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["llama3", "mistral7b-v1", "qwen25"])
def test_vendor_tokenizers(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Ids beyond 16 bits, a metaspace model, a normalizer: as `tokenizers` has them."""
    source = shared_data / "tokenizers-hf" / name
    text = next(iter(sorted((shared_data / "eval").rglob("*.txt"))))
    lines = [line for line in text.read_text("utf-8").split("\n")[:300] if line]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "out"
    assert 0 == main(["encode", str(source), str(tmp_path / "text.txt"), "-o", str(out), "--json"])
    packed = vs.PackedIds.open(out)
    import tokenizers

    backend = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    end = [] if packed.eos_id is None else [packed.eos_id]
    for i, line in enumerate(lines):
        ids = backend.encode(line, add_special_tokens=False).ids
        assert ids + end == packed.document(i).tolist()
