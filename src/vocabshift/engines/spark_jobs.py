"""A job on Spark: a callable of this package runs on each partition of texts, and Spark adds up.

Owns what every such job needs: the columns of the text, the key of the sums and their way to the
driver, where they arrive in large rows (`PackSums`). Whatever is summed travels as words: runs are
such already, and the cells of a sketch become words of 8 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.engines.rows import RowOptions
from vocabshift.engines.spark_files import SparkFiles
from vocabshift.engines.sums import FIGURES, PackSums
from vocabshift.engines.words import counted_batch
from vocabshift.errors import CorpusError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Call = Callable[[Iterable[Any]], Iterable[Any]]
"""From record batches of text to record batches that are to be summed; can be pickled."""

_TEXT, _LANGUAGE = "text", "language"
_LINE = "value"  # Spark's name of a line's column
_WORDS = "part int, language string, word binary, count bigint"
_PACKED = "part int, language string, kind int, words binary, ends binary, counts binary"
_KEY = ("part", "language", "word")
_TASKS_PER_SUM = 8
_MOST_SUMS = 2000


@dataclass(frozen=True)
class Texts:
    """A DataFrame of texts, in columns with our names."""

    frame: DataFrame
    rows: RowOptions
    is_lines: bool = False  # whose ends may be \r\n

    def call(self, call: Call, part: int, *, in_few_tasks: bool = False) -> DataFrame:
        """What the call makes of each partition, as words of a numbered part of the corpus."""
        frame = self.frame
        if in_few_tasks:  # of a job whose result hardly grows with the text
            frame = frame.coalesce(_cores(frame))
        return frame.mapInArrow(_Task(call, part, self.is_lines), _WORDS)


def texts_of(frame: DataFrame, rows: RowOptions, *, is_lines: bool = False) -> Texts:
    """The texts of a DataFrame; CorpusError for columns that it lacks."""
    from pyspark.sql import functions

    present = dict(frame.dtypes)
    columns = []
    # mapInArrow refuses names with dots, so columns get names of ours.
    for name, ours in zip(rows.columns, (_TEXT, _LANGUAGE), strict=False):
        if name not in present:
            raise CorpusError(
                f"no column {name!r}; present: {', '.join(present)}; name one as FILE:COLUMN"
            )
        if present[name] != "string":
            raise CorpusError(f"column {name!r} is {present[name]}, and text is needed; cast it")
        columns.append(functions.col("`" + name.replace("`", "``") + "`").alias(ours))
    if rows.json_lines is None:
        rows = replace(rows, text=_TEXT, language=rows.language and _LANGUAGE)
    else:
        rows = replace(rows, json_lines=_TEXT)
    return Texts(frame.select(*columns), rows, is_lines)


def read_texts(session: SparkSession, files: SparkFiles, rows: RowOptions) -> Texts:
    """The texts of files; `rows` names the columns or fields."""
    paths = list(files.paths)
    if files.format == "parquet":
        return texts_of(session.read.parquet(*paths), rows)
    if files.is_whole:
        lines = session.read.text(paths, wholetext=True)
    else:
        lines = session.read.text(paths, lineSep="\n")
    if files.format == "jsonl":
        return texts_of(lines, replace(rows, json_lines=_LINE))
    rows = replace(rows, text=_LINE, language=None)
    return texts_of(lines, rows, is_lines=not files.is_whole)


@dataclass(frozen=True)
class _Task:
    """A call, with what Spark wants: no unsigned integers, and one schema for all jobs."""

    call: Call
    part: int
    is_lines: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in self.call(map(_without_return, batches) if self.is_lines else batches):
            *key, numbers = batch.columns
            language, words = key if len(key) == 2 else (pa.nulls(len(batch), pa.string()), *key)
            if words.type == pa.int64():
                words = _as_words(words)
            part = pa.repeat(pa.scalar(self.part, pa.int32()), len(batch))
            yield pa.record_batch(
                [part, language, words, numbers.cast(pa.int64())],
                names=["part", "language", "word", "count"],
            )


def _without_return(batch: Any) -> Any:
    r"""Lines without the \r of their \r\n."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = batch.column(0)
    is_large = pa.types.is_large_string(lines.type)
    lines = lines.view(pa.large_binary() if is_large else pa.binary())  # maybe not UTF-8
    ends = pc.ends_with(lines, b"\r")
    if pc.any(ends).as_py():
        lines = pc.if_else(ends, pc.binary_slice(lines, 0, -1), lines)
    return pa.record_batch([lines], names=[_TEXT])


def _as_words(numbers: Any) -> Any:
    """The 8 bytes of each number."""
    import pyarrow as pa

    values = np.ascontiguousarray(numbers.to_numpy(), dtype="<i8")
    offsets = np.arange(len(values) + 1, dtype=np.int32) * 8
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _cores(frame: DataFrame) -> int:
    return int(frame.sparkSession.sparkContext.defaultParallelism)


def add_up(words: Sequence[DataFrame]) -> DataFrame:
    """All words with their sums, by part and language."""
    from pyspark.sql import DataFrame, functions

    rows = reduce(DataFrame.unionAll, words)
    # A task gives each word once, so Spark need not add up before the shuffle, only after it.
    n_sums = min(max(rows.rdd.getNumPartitions() // _TASKS_PER_SUM, _cores(rows)), _MOST_SUMS)
    total = functions.sum("count").alias("count")
    return rows.repartition(n_sums, *_KEY).groupBy(*_KEY).agg(total)


def collect(sums: DataFrame, *, of_text: bool = True) -> Iterator[Mapping[str, Any]]:
    """Run a job, and bring its sums to the driver in packed rows.

    of_text: whether the words are text, so that those that begin with 0xFF are a few figures: they
        come first. Cells and runs are numbers, and any of them may begin so.
    """
    from pyspark import StorageLevel

    packed = sums.mapInArrow(PackSums(), _PACKED).persist(StorageLevel.DISK_ONLY)
    try:
        # A job over all partitions fills the cache in parallel; they are then read one by one.
        rest = packed.where(f"kind != {FIGURES}") if of_text else packed
        if of_text:
            for row in packed.where(f"kind = {FIGURES}").collect():
                yield row.asDict()
        else:
            packed.count()
        for row in rest.toLocalIterator(prefetchPartitions=True):
            yield row.asDict()
    finally:
        packed.unpersist()


def as_batch(row: Mapping[str, Any], column: str) -> Any:
    """A packed row as the record batch that the task gave, with its words in `column`."""
    import pyarrow as pa

    words, ends, counts = bytes(row["words"]), row["ends"], row["counts"]
    if column == "cell":
        columns = [pa.array(np.frombuffer(words, "<i8")), pa.array(np.frombuffer(counts, "u8"))]
        return pa.record_batch(columns, names=[column, "count"])
    return counted_batch(
        row["language"], words, np.frombuffer(ends, "i8"), np.frombuffer(counts, "u8"), column
    )
