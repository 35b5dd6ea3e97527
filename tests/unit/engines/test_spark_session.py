"""What a user gets without pyspark or Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.engines.spark_session import SparkSettings, check_java, open_session


def java_that_says(folder: Path, version: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="apt-get install openjdk-17-jre-headless"):
        check_java()


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "none"])
def test_an_old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="Spark needs a Java 17 runtime"):
        check_java()


@pytest.mark.parametrize("version", ["17.0.15", "21"])
def test_a_java_that_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()


@pytest.mark.parametrize(
    ("master", "is_submitted", "is_local"),
    [
        (None, False, True),
        ("local[2,4]", False, True),
        ("local-cluster[2,1,2048]", False, True),
        ("yarn", False, False),
        ("spark://host:7077", False, False),
        (None, True, False),
    ],
)
def test_where_workers_run_the_python_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, master: str | None, *, is_submitted: bool, is_local: bool
) -> None:
    if is_submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    else:
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert is_local == SparkSettings(master).is_local


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vocabshift.text.records.find_spec", lambda _: None)
    with (
        pytest.raises(ImportError, match=r"pip install 'vocabshift\[spark\]'"),
        open_session(SparkSettings()),
    ):
        pass
