"""A session of Spark: opened with clear errors, and what its tasks raise.

pyspark is imported only when it is used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vocabshift.errors import CorpusError
from vocabshift.text.records import check_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA = 17
_NO_JAVA = (
    f"Spark needs a Java {_JAVA} runtime: apt-get install openjdk-{_JAVA}-jre-headless (and set "
    "JAVA_HOME if it is not on the PATH)"
)


@dataclass(frozen=True)
class SparkSettings:
    """Where Spark runs, and how."""

    master: Annotated[str | None, "URL"] = None
    """Spark's master, such as local[4] or yarn. None: that of spark-submit, or local[*]."""
    conf: Annotated[tuple[str, ...], "KEY=VALUE"] = ()
    """Settings of Spark, such as spark.executor.memory=4g."""


@contextmanager
def open_session(settings: SparkSettings) -> Iterator[SparkSession]:
    """The session of spark-submit or a notebook, or a new one, which is stopped at the end."""
    for package in ("pyspark", "pandas", "pyarrow"):
        check_installed(package, "--engine spark", extra="spark")
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        check_java()
    builder = SparkSession.builder.appName("vocabshift count")
    if settings.master is not None:
        builder = builder.master(settings.master)
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.log.level": "ERROR",
        "spark.sql.caseSensitive": "true",
    }
    for word in settings.conf:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ValueError(f"--conf {word!r} is no KEY=VALUE")
        conf[key] = value
    for key, value in conf.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        with _python_of_workers(settings.master, conf), clear_errors():
            session = builder.getOrCreate()
        try:
            yield session
        finally:
            if active is None:
                session.stop()


@contextmanager
def _python_of_workers(master: str | None, conf: Mapping[str, str]) -> Iterator[None]:
    """Name the Python of the workers to pyspark, which reads the environment alone.

    On this machine it is the one that runs here; else pyspark takes the `python3` of the PATH,
    which may lack this package. On a cluster, paths of this machine mean nothing.
    """
    master = master or conf.get("spark.master")
    if master is None and not {"PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR"} & {
        *os.environ
    }:
        master = "local"  # neither spark-submit nor a configuration that could name another
    python = conf.get("spark.pyspark.python")
    if python is None and master is not None and master.startswith("local"):
        python = sys.executable
    if python is None or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = python
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]


def check_java() -> None:
    """Raise FileNotFoundError unless a Java runtime is found that Spark can use."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if java is None:
        raise FileNotFoundError(_NO_JAVA)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if version is None or int(version[1]) < _JAVA:
        found = version[1] if version else "unknown"
        raise FileNotFoundError(f"{java} is Java {found}; {_NO_JAVA}")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Raise what a task raised, without the stack of the JVM around it.

    What Spark itself says becomes a CorpusError, without the names of Java's packages. An exception
    of Python in a task is raised as it is, unless it is ours.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException, PythonException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = str(error)
        if missing := re.search("No module named '(vocabshift|pyarrow|pandas)'", said):
            raise ImportError(
                f"the Python of Spark's workers has no {missing[1]}: docs/clusters.md says how to "
                "bring it there, and spark.pyspark.python which Python is used",
                name=missing[1],
            ) from error
        if own := re.search(r"^vocabshift\.errors\.CorpusError: (.*)$", said, re.MULTILINE):
            raise CorpusError(own[1]) from error
        if isinstance(error, PythonException):
            raise
        raise CorpusError(f"Spark: {_without_java(said)}") from error


def _without_java(said: str) -> str:
    """What Spark or Hadoop says, in one line, without Java's stack and the classes that only say
    that something went wrong."""
    message, *_ = said.split("\n\tat ")
    if message.startswith("An error occurred while calling"):  # py4j's line
        _, _, message = message.partition("\n: ")
    text = " ".join(message.split())
    text = re.sub(r"\b(?:[a-z][\w$]*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)", "", text)  # packages
    empty = "Runtime|Spark|IllegalArgument|ClassNotFound|URISyntax"
    text = re.sub(rf"^(?:(?:{empty})Exception: )+", "", text)
    if text.startswith("Relative path in absolute URI"):
        text += "; Spark's globs meet a name with a colon there: rename it, or name the files"
    return text[:500]
