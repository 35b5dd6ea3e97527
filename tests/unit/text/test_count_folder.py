"""Folders of counts that are damaged, foreign or counted in another way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import FILE, CountFolder, write_counts
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED, Split


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = Corpus.from_texts(
        {"eng": ["some words", "some more"], "hin": ["राम का घर"]}, weights={"hin": 2.5}
    )
    reader = CorpusReader(corpus, NAMED["o200k"], "nfc", ("<|end|>",), by_language=True)
    folder = tmp_path_factory.mktemp("counts")
    write_counts(reader.count_words(), reader, folder)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "counts"))


def change(folder: Path, **fields: Any) -> None:
    document = json.loads((folder / FILE).read_text("utf-8"))
    (folder / FILE).write_text(json.dumps(document | fields), "utf-8")


def test_what_it_says(written: Path) -> None:
    folder = CountFolder.open(written)
    assert (folder.normalizer, folder.special_tokens) == ("nfc", ("<|end|>",))
    assert [(g.language, g.weight, g.documents, g.words, g.occurrences) for g in folder.groups] == [
        ("eng", 1.0, 2, 3, 4),
        ("hin", 2.5, 1, 3, 3),
    ]
    (data, ends, counts) = next(folder.read(0))
    assert (data, ends.tolist(), counts.tolist()) == (b" more wordssome", [5, 11, 15], [1, 1, 2])


def test_a_folder_without_counts(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="is no folder of counts"):
        CountFolder.open(tmp_path)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"format": 1}', "[" * 100_000, "\udcff"]
)
def test_a_damaged_description(folder: Path, content: str) -> None:
    (folder / FILE).write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(CorpusError, match="count the corpus again"):
        CountFolder.open(folder)


@pytest.mark.parametrize(
    "fields",
    [
        {"normalizer": 5},
        {"special_tokens": [3]},
        {"special_tokens_in_text": -1},
        {"corpus_fingerprint": None},
        {"groups": [{}]},
        {"groups": 7},
        {"pattern": [{"regex": 5}]},
        {"pattern": [{"what": "x"}]},
    ],
)
def test_a_description_of_other_types(folder: Path, fields: dict[str, Any]) -> None:
    change(folder, **fields)
    with pytest.raises(CorpusError, match=r"is damaged .*; count the corpus again"):
        CountFolder.open(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shard", "../words"),
        ("weight", 0),
        ("weight", float("nan")),
        ("words", True),
        ("bytes", -1),
    ],
)
def test_a_group_that_cannot_be(folder: Path, field: str, value: Any) -> None:
    groups = json.loads((folder / FILE).read_text("utf-8"))["groups"]
    groups[1][field] = value
    change(folder, groups=groups)
    with pytest.raises(CorpusError, match="is damaged"):
        CountFolder.open(folder)


def test_another_version(folder: Path) -> None:
    change(folder, format=2)
    with pytest.raises(CorpusError, match="has the format 2, and this version reads 1"):
        CountFolder.open(folder)


def test_a_missing_shard(folder: Path) -> None:
    (folder / "words-00001.parquet").unlink()
    with pytest.raises(CorpusError, match=r"words-00001.parquet is missing; restore it, or count"):
        CountFolder.open(folder)


def test_a_shard_of_another_group(folder: Path) -> None:
    shutil.copy(folder / "words-00000.parquet", folder / "words-00001.parquet")
    with pytest.raises(CorpusError, match="holds 3 words and 4 occurrences"):
        CountFolder.open(folder)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"word": pa.array(["a"]), "count": pa.array([1], pa.uint64())}, "has the columns"),
        ({"word": pa.array([b"a"]), "count": pa.array([1])}, "has the columns"),
        ({"word": pa.array([b"a"])}, "has the columns"),
        (
            {"word": pa.array([b"b", b"a"]), "count": pa.array([1, 1], pa.uint64())},
            "is not sorted",
        ),
        (
            {"word": pa.array([b"a", b"a"]), "count": pa.array([1, 1], pa.uint64())},
            "is not sorted",
        ),
        ({"word": pa.array([b""]), "count": pa.array([1], pa.uint64())}, "an empty word"),
        ({"word": pa.array([b"\xff"]), "count": pa.array([1], pa.uint64())}, "not UTF-8"),
        ({"word": pa.array([b"a\xc3", b"b"]), "count": pa.array([1, 1], pa.uint64())}, "not UTF-8"),
        ({"word": pa.array([b"a", None]), "count": pa.array([1, 1], pa.uint64())}, "holds nulls"),
    ],
)
def test_a_shard_of_other_content(folder: Path, columns: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(columns), folder / "words-00000.parquet")
    with pytest.raises(CorpusError, match=message):
        CountFolder.open(folder)


def test_words_that_are_valid_only_together(folder: Path) -> None:
    """In bytes "Ã" + "©" is "é": each shard's blocks are checked word by word."""
    table = pa.table(
        {"word": pa.array([b"\x7f\xc3", b"\xa9"]), "count": pa.array([1, 1], pa.uint64())}
    )
    pq.write_table(table, folder / "words-00000.parquet")
    with pytest.raises(CorpusError, match="a word that is not UTF-8"):
        CountFolder.open(folder)


def test_sorted_across_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vocabshift.text.count_shards._BATCH_ROWS", 2)
    assert [len(ends) for _, ends, _ in CountFolder.open(folder).read(0)] == [2, 1]
    table = pa.table(
        {"word": pa.array([b"a", b"c", b"b", b"d"]), "count": pa.array([1] * 4, pa.uint64())}
    )
    pq.write_table(table, folder / "words-00000.parquet")
    with pytest.raises(CorpusError, match="is not sorted"):
        CountFolder.open(folder)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pattern": NAMED["gpt2"]}, "the pattern o200k, and gpt2 is asked for"),
        ({"pattern": (Split("a"),)}, "the pattern o200k, and .*'regex': 'a'.* is asked for"),
        ({"normalizer": None}, "the normalizer nfc, and None is asked for"),
        ({"special_tokens": ()}, r"special tokens \['<\|end\|>'\], and \[\] is asked for"),
    ],
)
def test_counted_in_another_way(written: Path, changed: dict[str, Any], message: str) -> None:
    folder = CountFolder.open(written)
    same = {"pattern": NAMED["o200k"], "normalizer": "nfc", "special_tokens": ["<|end|>"]}
    folder.require(**same)
    with pytest.raises(CorpusError, match=message):
        folder.require(**(same | changed))
