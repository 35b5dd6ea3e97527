"""`count --engine spark` on this machine: the folder of the local command, and what may go wrong.

One session serves all tests, as the start of its JVM is most of the time.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vocabshift.cli.main import main
from vocabshift.engines import CountPieces, EncodeTexts, count_words, write_words
from vocabshift.engines.spark_session import SparkSettings, check_java, open_session
from vocabshift.text.count_folder import CountFolder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # sockets of py4j
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Two Python workers at a time; a task may fail three times."""
    pytest.importorskip("pyspark", reason="pyspark is needed: pip install 'vocabshift[spark]'")
    try:
        check_java()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    conf = (
        "spark.driver.memory=1g",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    with open_session(SparkSettings("local[2,4]", conf)) as session:
        yield session


def run(*words: object, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert 0 == main(["count", *map(str, words), "--json"]), capsys.readouterr().err
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_all_formats_give_the_bytes_of_the_local_command(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hi").mkdir()
    (tmp_path / "hi" / "a b.txt").write_bytes(
        b"\xef\xbb\xbf" + "राम का घर\r\n\nराम \r है\n".encode() * 50
    )
    (tmp_path / "hi" / "b[1].txt.gz").write_bytes(gzip.compress("घर और घर".encode()))
    records: list[Any] = [
        {"body": "some <|e|>more words\n\nhere"},
        {"body": None},
        "text",
        {"body": ""},
    ]
    lines = "\r\n\n".join(map(json.dumps, records * 30))
    (tmp_path / "en.jsonl").write_text(lines, encoding="utf-8")
    texts = pa.array(["words of a table", None, ""] * 40).dictionary_encode()
    pq.write_table(
        pa.table({"te.xt": texts, "n": pa.array([1] * 120, pa.uint64())}),
        tmp_path / "en.parquet",
        row_group_size=10,
    )
    (tmp_path / "empty.txt").write_bytes(b"\n")
    specs = [
        f"en={tmp_path / 'en.jsonl'}:body@2",
        f"hi={tmp_path / 'empty.txt'}",
        f"en={tmp_path / 'en.parquet'}:te.xt",
        f"hi={tmp_path / 'hi'}",
        f"{tmp_path / 'hi'}",
        f"en={tmp_path / 'en.parquet'}:te.xt@2",
    ]
    options = ["--normalizer", "nfc", "--special-tokens", "<|e|>", "e"]
    local, made = tmp_path / "local", tmp_path / "made"
    expected = run(*specs, *options, "-o", local, capsys=capsys)
    found = run(*specs, *options, "-o", made, "--engine", "spark", capsys=capsys)
    assert content(local) == content(made)
    assert {**expected, "out": str(made), "null_rows": 30 + 40 + 40, "bad_rows": 0} == found
    CountFolder.open(made)


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_a_data_frame(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], n_partitions: int
) -> None:
    """Languages of a column, one word in nearly every place, and a dead worker."""
    rows = [("en", "the the the the"), ("hi", "राम का घर"), ("en", "the cat"), (None, "x")] * 99
    for label in ("en", "hi"):
        text = "".join(text + "\n" for language, text in rows if language == label)
        (tmp_path / label).with_suffix(".txt").write_text(text, encoding="utf-8")
    (tmp_path / "none.txt").write_text("x\n" * 99, encoding="utf-8")
    specs = [tmp_path / "none.txt", f"en={tmp_path}/en.txt", f"hi={tmp_path}/hi.txt"]
    run(*specs, "-o", tmp_path / "local", capsys=capsys)
    texts = spark.createDataFrame(rows, "lang string, text string").repartition(n_partitions)
    count = KilledOnce(language="lang", marker=str(tmp_path / "was killed"))
    words = count_words(texts, count)
    shown = words.where("word < X'FE'").collect()  # docs/clusters.md: no statistics
    assert [("en", b" cat"), ("en", b" the"), ("en", b"the")] == sorted(
        (row.language, bytes(row.word)) for row in shown if row.language == "en"
    )
    assert (tmp_path / "was killed").exists()
    result = write_words(words, tmp_path / "made", count)
    assert 396 == result["documents"]
    assert content(tmp_path / "local") == content(tmp_path / "made")


@dataclass(frozen=True)
class KilledOnce(CountPieces):
    """Kills its Python worker once, after half of what it had to give."""

    marker: str = ""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for number, batch in enumerate(super().__call__(batches)):
            yield batch
            if number == 0 and not os.path.exists(self.marker):  # noqa: PTH110
                with open(self.marker, "w", encoding="utf-8"):  # noqa: PTH123
                    os.kill(os.getpid(), signal.SIGKILL)


def test_bad_rows(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\nbad \xff\nbad \xff\n")
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "good"}\n{"text": 5}\n{"text"\n')
    (tmp_path / "good.txt").write_text("good\n", encoding="utf-8")
    specs = [f"{tmp_path}/a.txt", f"{tmp_path}/b.jsonl"]
    out = tmp_path / "out"
    assert 2 == main(["count", *specs, "-o", str(out), "--engine", "spark"])
    error = capsys.readouterr().err.splitlines()[-1]
    assert "a row is no text: " in error
    assert "--bad-rows keep" in error
    assert not out.exists()
    found = run(*specs, "-o", out, "--engine", "spark", "--bad-rows", "keep", capsys=capsys)
    assert 4 == found["bad_rows"]
    kept = [json.loads(line) for line in (out / "bad-rows.jsonl").read_text("utf-8").splitlines()]
    wrong_type = "record, column 'text': int instead of text; name another column"
    not_json = "record: not JSON (Expecting ':' delimiter)"
    assert [
        {"source": specs[0], "rows": 2, "reason": "not UTF-8 at byte 4", "row_base64": "YmFkIP8="},
        {"source": specs[1], "rows": 1, "reason": wrong_type, "row": '{"text": 5}'},
        {"source": specs[1], "rows": 1, "reason": not_json, "row": '{"text"'},
    ] == kept
    (out / "bad-rows.jsonl").unlink()
    run(f"{tmp_path}/good.txt", f"{tmp_path}/good.txt", "-o", tmp_path / "local", capsys=capsys)
    assert content(tmp_path / "local") == content(out)


def test_a_language_of_a_column(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"text": ["b", "a", "c"], "lang": ["hi", "en", "hi"]})
    pq.write_table(table, tmp_path / "a.parquet")
    spark_options = ["--engine", "spark", "--language-column", "lang"]
    run(f"{tmp_path}/a.parquet", "-o", tmp_path / "out", *spark_options, capsys=capsys)
    groups = CountFolder.open(tmp_path / "out").groups
    assert [("en", 1), ("hi", 2)] == [(group.language, group.documents) for group in groups]


def test_runs_for_superwords(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both passes; a tokenizer's superwords are learned from them as from the text."""
    english = "some words and some more\nmore of the same words\nof the\n" * 9
    (tmp_path / "en.txt").write_text(english, encoding="utf-8")
    lines = [json.dumps({"text": text}) for text in ("राम का घर", "राम का", "का घर है") * 9]
    (tmp_path / "hi.jsonl").write_text("\n".join(lines), encoding="utf-8")
    texts = [f"en={tmp_path}/en.txt", f"hi={tmp_path}/hi.jsonl@2"]
    words, on_spark = tmp_path / "words", ("--engine", "spark")
    run(*texts, "--pattern", "ist-stage2+o200k", "-o", words, capsys=capsys)
    count = [*texts, "--runs", "--counts", words, "--recipe", "ist", "--vocab-size", "290"]
    local, made = tmp_path / "local", tmp_path / "made"
    expected = run(*count, "-o", local, capsys=capsys)
    found = run(*count, "-o", made, *on_spark, capsys=capsys)
    assert content(local) == content(made)
    assert found["superwords"] > 0
    assert {**expected, "out": str(made)} == found


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("hi={}/empty.txt", [], "no text in"),
        ("{}/a.parquet", [], "no column 'text'; present: body, n; name one as FILE:COLUMN"),
        ("{}/a.parquet:n", [], "a.parquet: column 'n' is int64, and text is needed; cast it"),
        ("file://{}/[bc].parquet", [], "Expected Spark type string, actual Parquet type INT64"),
        ("file://{}/colon/*.txt", [], "Spark's globs meet a name with a colon there"),
        ("file://{}/no.parquet", [], "Spark: [PATH_NOT_FOUND]"),
        ("{}/a.txt", ["-j", "2"], "-j is for --engine local"),
        ("{}/a.txt", ["--conf", "spark"], "--conf 'spark' is no KEY=VALUE"),
        ("{}/a.txt", ["--language-bytes", "1KB"], "--engine spark counts all documents"),
    ],
)
def test_what_cannot_be_counted(
    spark: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spec: str,
    options: list[str],
    message: str,
) -> None:
    (tmp_path / "empty.txt").write_bytes(b"\n\n")
    (tmp_path / "a.txt").write_bytes(b"a\n")
    pq.write_table(pa.table({"body": ["a"], "n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"text": [1]}), tmp_path / "c.parquet")
    (tmp_path / "colon").mkdir()
    (tmp_path / "colon" / "x:y.txt").write_bytes(b"a\n")
    words = ["count", spec.format(tmp_path), "-o", str(tmp_path / "out"), "--engine", "spark"]
    assert 2 == main([*words, *options])
    said = capsys.readouterr().err.splitlines()[-1]
    assert message in said
    assert "Exception: " not in said
    assert not (tmp_path / "out").exists()


def test_texts_are_encoded(spark: Any, tmp_path: Path) -> None:
    """The example of the documentation: `mapInArrow` takes the callable as it is."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    import small_models

    folder = small_models.old_tokenizer().save_pretrained(tmp_path / "tokenizer")
    texts = ["the cat", None, "", *(f"{number} घर" for number in range(20))]
    rows = pa.table({"id": range(len(texts)), "text": texts})
    pq.write_table(rows, tmp_path / "texts.parquet")
    pages = spark.read.parquet(str(tmp_path / "texts.parquet")).repartition(4)
    encode = EncodeTexts(str(folder), eos="</s>")
    schema = from_arrow_schema(encode.schema(to_arrow_schema(pages.schema)))
    found = pages.mapInArrow(encode, schema).orderBy("id").collect()
    assert encode(rows)["input_ids"].to_pylist() == [row["input_ids"] for row in found]
