"""Which files Spark may read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vocabshift.engines.spark_files import SparkFiles, files_of
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus


def test_a_folder_of_several_formats(tmp_path: Path) -> None:
    folder = tmp_path / "a[b]"
    folder.mkdir()
    for name in ("x.txt", "b.jsonl.gz", "a.jsonl"):
        (folder / name).write_bytes(b"a")
    pq.write_table(pa.table({"text": ["a"]}), folder / "c.parquet")
    [part] = Corpus.from_specs([f"hi={folder}"], documents="file").parts
    at = "file://" + str(tmp_path.resolve()) + "/a\\[b\\]/"
    assert [
        SparkFiles("jsonl", (at + "a.jsonl", at + "b.jsonl.gz")),
        SparkFiles("parquet", (at + "c.parquet",)),
        SparkFiles("txt", (at + "x.txt",), is_whole=True),
    ] == files_of(part)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            "hi=s3a://texts/hi/*.parquet:body@2",
            SparkFiles("parquet", ("s3a://texts/hi/*.parquet",)),
        ),
        ("hdfs:///all/lang=hi/", SparkFiles("parquet", ("hdfs:///all/lang=hi/",))),
        ("hi=gs://texts/a.jsonl.gz", SparkFiles("jsonl", ("gs://texts/a.jsonl.gz",))),
        ("file:///no/such/a.txt", SparkFiles("txt", ("file:///no/such/a.txt",))),
    ],
)
def test_storage_of_a_cluster(spec: str, expected: SparkFiles) -> None:
    [part] = Corpus.from_specs([spec]).parts
    assert [expected] == files_of(part)
    with pytest.raises(CorpusError, match="can be read by a cluster alone: vocabshift count"):
        list(part.read())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"[]", "Spark reads .parquet, .txt and .jsonl"),
        ("a.txt.zst", b"", "Spark reads .parquet, .txt and .jsonl"),
        ("_a.txt", b"a", "Spark skips names that begin with _ or ."),
        ("a.txt", b"a\nb\r", "takes for a line end"),
        ("a.txt.GZ", gzip.compress(b"a", mtime=0), "Spark reads .parquet, .txt and .jsonl"),
        ("a.parquet.gz", b"", "Spark reads .parquet, .txt and .jsonl"),
        ("a:b.txt", b"a", "cannot read a file with a colon in its name; rename it"),
    ],
)
def test_files_that_spark_would_read_in_another_way(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    [part] = Corpus.from_specs([str(tmp_path / name)]).parts
    with pytest.raises(CorpusError, match=message):
        files_of(part)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_byte_order_mark(tmp_path: Path, name: str) -> None:
    """Spark drops that of lines, as everywhere, and keeps that of a whole file."""
    data = b"\xef\xbb\xbfa"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    [part] = Corpus.from_specs([str(tmp_path / name)]).parts
    assert "txt" == files_of(part)[0].format
    [part] = Corpus.from_specs([str(tmp_path / name)], documents="file").parts
    with pytest.raises(CorpusError, match="keeps the byte order mark of a whole file"):
        files_of(part)


def test_a_link_keeps_its_name(tmp_path: Path) -> None:
    """Its suffix says how the content is packed; what it points to may have none."""
    (tmp_path / "_blob").write_bytes(gzip.compress(b"a", mtime=0))
    (tmp_path / "a.txt.gz").symlink_to(tmp_path / "_blob")
    [part] = Corpus.from_specs([str(tmp_path / "a.txt.gz")]).parts
    assert [SparkFiles("txt", (f"file://{tmp_path.resolve()}/a.txt.gz",))] == files_of(part)


def test_text_that_is_in_no_file() -> None:
    [part] = Corpus.from_texts(["a"]).parts
    with pytest.raises(CorpusError, match="texts: Spark reads files; save it to one first"):
        files_of(part)


def test_chosen_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    [part] = Corpus.from_specs([f"en={tmp_path / 'a.txt'}"]).limit_bytes(5).parts
    with pytest.raises(CorpusError, match="--engine spark counts all documents"):
        files_of(part)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    [part] = Corpus.from_specs([str(tmp_path / "a.txt")]).parts
    assert ["txt"] == [files.format for files in files_of(part)]


def test_each_parquet_file_has_the_column(tmp_path: Path) -> None:
    """Spark would take the column from one of them, and read nulls in the others."""
    pq.write_table(pa.table({"body": ["a"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "b.parquet")
    [part] = Corpus.from_specs([f"{tmp_path}:body"]).parts
    with pytest.raises(CorpusError, match=r"b.parquet: no column 'body'; present: text"):
        files_of(part)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorpusError, match=r"b.parquet: no Parquet \("):
        files_of(part)


def test_each_parquet_file_has_text_in_the_columns(tmp_path: Path) -> None:
    """Spark takes the types of one of them, and stops in the middle of the job at another."""
    pq.write_table(pa.table({"text": ["a"], "lang": ["hi"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a"], "lang": [5]}), tmp_path / "b.parquet")
    [part] = Corpus.from_specs([str(tmp_path)]).parts
    assert 1 == len(files_of(part))
    with pytest.raises(CorpusError, match=r"b.parquet: column 'lang' is int64, and text is needed"):
        files_of(part, "lang")
    with pytest.raises(CorpusError, match=r"a.parquet: no column 'label'; present: text, lang"):
        files_of(part, "label")
    [part] = Corpus.from_specs([f"hi={tmp_path}"]).parts
    assert 1 == len(files_of(part, "lang"))
    text = pa.array(["a"]).dictionary_encode()
    pq.write_table(pa.table({"text": text, "lang": [5]}), tmp_path / "b.parquet")
    assert 1 == len(files_of(part))
    pq.write_table(pa.table({"text": [b"a"]}), tmp_path / "b.parquet")
    with pytest.raises(CorpusError, match=r"b.parquet: column 'text' is binary"):
        files_of(part)
