"""What a user gets without pyspark or Java."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from vocabshift.engines.spark_session import (
    SparkSettings,
    _python_of_workers,
    _without_java,
    check_java,
    open_session,
)


def java_that_says(folder: Path, version: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="apt-get install openjdk-17-jre-headless"):
        check_java()


@pytest.mark.no_tsan
@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "none"])
def test_an_old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="Spark needs a Java 17 runtime"):
        check_java()


@pytest.mark.no_tsan
@pytest.mark.parametrize("version", ["17.0.15", "21"])
def test_a_java_that_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()


@pytest.mark.parametrize(
    ("master", "conf", "environment", "expected"),
    [
        (None, {}, {}, sys.executable),
        ("local[2]", {}, {"SPARK_HOME": "/spark"}, sys.executable),
        ("local-cluster[2,1,1024]", {}, {}, sys.executable),
        (None, {"spark.master": "yarn"}, {}, None),
        ("yarn", {}, {}, None),
        (None, {}, {"SPARK_HOME": "/spark"}, None),
        (None, {}, {"PYSPARK_GATEWAY_PORT": "1"}, None),
        ("yarn", {"spark.pyspark.python": "./env/python"}, {}, "./env/python"),
        ("local", {}, {"PYSPARK_PYTHON": "python9"}, "python9"),
    ],
)
def test_the_python_of_the_workers(
    master: str | None,
    conf: dict[str, str],
    environment: dict[str, str],
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with _python_of_workers(master, conf):
        assert expected == os.environ.get("PYSPARK_PYTHON")
    assert before == dict(os.environ)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "An error occurred while calling o285.collectToPython.\n: org.apache.spark."
            "SparkException: [FAILED_READ_FILE] Encountered error while reading file file:///a. "
            "SQLSTATE: KD001\n\tat org.apache.spark.sql.A.b(A.scala:9)\nCaused by: java.lang.X",
            "[FAILED_READ_FILE] Encountered error while reading file file:///a. SQLSTATE: KD001",
        ),
        (
            "java.net.URISyntaxException: Relative path in absolute URI: a:b.txt",
            "Relative path in absolute URI: a:b.txt; Spark's globs meet a name with a colon there: "
            "rename it, or name the files",
        ),
        ("java.net.UnknownHostException: nowhere", "UnknownHostException: nowhere"),
        (
            "An error occurred while calling o5.parquet.\n: java.lang.RuntimeException: "
            "java.lang.ClassNotFoundException: Class org.apache.S3A not found\n\tat a.b(C.java:1)",
            "Class org.apache.S3A not found",
        ),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:/a.",
            "[PATH_NOT_FOUND] Path does not exist: file:/a.",
        ),
    ],
)
def test_what_spark_says_begins_with_no_class_of_java(said: str, expected: str) -> None:
    assert expected == _without_java(said)


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vocabshift.text.records.find_spec", lambda _: None)
    with (
        pytest.raises(ImportError, match=r"pip install 'vocabshift\[spark\]'"),
        open_session(SparkSettings()),
    ):
        pass
