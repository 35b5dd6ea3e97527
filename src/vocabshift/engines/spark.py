"""Counting on Spark: text is cut into words where it lies, and only sums travel.

`count_words` does it for a DataFrame: `mapInArrow` counts each partition, and Spark adds up the
words. `write_words` writes the sums as a folder of counts. `count_on_spark` does both for the SPECs
of the command line. The driver holds `memory_bytes` of words, and needs no storage that it shares
with the executors.

Needs the extra `vocabshift[spark]` and a Java runtime. pyspark is imported only when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vocabshift.engines.rows import BadRows, BatchCorpus
from vocabshift.engines.spark_files import SparkFiles, files_of
from vocabshift.engines.spark_session import SparkSettings, clear_errors, open_session
from vocabshift.engines.sums import FIGURES, PackSums, Sums
from vocabshift.engines.words import CountPieces
from vocabshift.errors import CorpusError
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.readers import FileSource, RemoteSource
from vocabshift.text.selection import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WORDS = "part int, language string, word binary, count bigint"
_PACKED = "part int, language string, kind int, words binary, ends binary, counts binary"
_KEY = ("part", "language", "word")
_TASKS_PER_SUM = 8
_MOST_SUMS = 2000
_LINE = "value"  # Spark's name of a line's column
_TEXT, _LANGUAGE = "text", "language"


@dataclass(frozen=True)
class SparkOptions(SparkSettings):
    """How `count --engine spark` runs."""

    language_column: Annotated[str | None, "NAME"] = None
    """Column or field of the language, for SPECs without lang=."""
    bad_rows: BadRows = "stop"
    """Rows that are no text: stop with an error, or keep them apart, in bad-rows.jsonl."""


def count_words(texts: DataFrame, count: CountPieces | None = None) -> DataFrame:
    """Count the words of a DataFrame of texts.

    Returns a DataFrame of `language`, `word` (binary) and `count`, each word once per language.
    Words that begin with 0xFE or 0xFF are bad rows and statistics; `write_words` needs them.
    """
    return _sums([_counted(texts, count or CountPieces(), 0)]).drop("part")


def write_words(
    words: DataFrame,
    out: str | Path,
    count: CountPieces | None = None,
    *,
    memory_bytes: int = 1 << 30,
    force: bool = False,
) -> dict[str, Any]:
    """Write what `count_words` returned as a folder of counts on the driver.

    count: the one that counted. memory_bytes: of words, on the driver; others go to disk.

    Returns the keys of `vocabshift count --engine spark --json`. FileExistsError if `out` exists,
    without `force`; CorpusError if there is no text.
    """
    from pyspark.sql import functions

    used = count or CountPieces()
    with outcome("count", out, force=force) as output, clear_errors():
        numbered = words.select(functions.lit(0).alias("part"), "*")
        sums = _collect(
            numbered,
            used,
            weights=[used.weight],
            names=["texts"],
            memory_bytes=memory_bytes,
            folder=output.folder,
        )
        sums.write()
    return {"out": str(out), **sums.figures}


def count_on_spark(
    corpus: Corpus,
    count: CountPieces,
    options: SparkOptions,
    folder: Path,
    *,
    memory_bytes: int = 0,
) -> dict[str, Any]:
    """Count a corpus of files on Spark, and write the counts into an existing folder.

    count: pattern, normalizer and special tokens; columns, label and weight come from the parts.
    memory_bytes: of words, on the driver; 0: no limit.

    Returns the figures of the verb. CorpusError for a source that Spark cannot read, for a bad row
    unless these are kept, and for a language without text; ImportError without pyspark, and
    FileNotFoundError without Java.
    """
    parts = corpus.parts
    count = replace(count, bad_rows=options.bad_rows)
    readable = [files_of(part) for part in parts]
    with open_session(options) as session, clear_errors():
        counted = [
            _read(session, files, _of_part(count, part, options), number)
            for number, part in enumerate(parts)
            for files in readable[number]
        ]
        weights, names = [part.weight for part in parts], [part.name for part in parts]
        sums = _collect(
            _sums(counted),
            count,
            weights=weights,
            names=names,
            memory_bytes=memory_bytes,
            folder=folder,
        )
    sums.require(corpus.languages)
    sums.write()
    return sums.figures


def _of_part(count: CountPieces, part: Part, options: SparkOptions) -> CountPieces:
    assert isinstance(part.source, FileSource | RemoteSource)
    language = options.language_column if part.language is None else None
    return replace(
        count,
        text=part.source.column or _TEXT,
        language=language,
        label=part.language,
        weight=part.weight,
        errors=part.source.errors,
    )


# Reading


def _read(session: SparkSession, files: SparkFiles, count: CountPieces, part: int) -> DataFrame:
    """The counted words of some files of a part."""
    paths = list(files.paths)
    if files.format == "parquet":
        return _counted(session.read.parquet(*paths), count, part)
    if files.is_whole:
        lines = session.read.text(paths, wholetext=True)
    else:
        lines = session.read.text(paths, lineSep="\n")
    if files.format == "jsonl":
        return _counted(lines, replace(count, json_lines=_LINE), part)
    return _counted(
        lines, replace(count, text=_LINE, language=None), part, is_lines=not files.is_whole
    )


# Counting


@dataclass(frozen=True)
class _CountPart:
    """`CountPieces` with what Spark wants: no unsigned integers, and the number of the part."""

    count: CountPieces
    part: int
    is_lines: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in self.count(map(_without_return, batches) if self.is_lines else batches):
            language, word, number = batch.columns
            part = pa.repeat(pa.scalar(self.part, pa.int32()), len(batch))
            yield pa.record_batch(
                [part, language, word, number.cast(pa.int64())],
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


def _counted(
    texts: DataFrame, count: CountPieces, part: int, *, is_lines: bool = False
) -> DataFrame:
    """The words of a DataFrame, once for each task; CorpusError for columns that it lacks."""
    from pyspark.sql import functions

    present = dict(texts.dtypes)
    columns = []
    # mapInArrow refuses names with dots, so columns get names of ours.
    for name, ours in zip(count.columns, (_TEXT, _LANGUAGE), strict=False):
        if name not in present:
            raise CorpusError(
                f"no column {name!r}; present: {', '.join(present)}; name one as FILE:COLUMN"
            )
        if present[name] != "string":
            raise CorpusError(f"column {name!r} is {present[name]}, and text is needed; cast it")
        columns.append(functions.col("`" + name.replace("`", "``") + "`").alias(ours))
    if count.json_lines is None:
        count = replace(count, text=_TEXT, language=count.language and _LANGUAGE)
    else:
        count = replace(count, json_lines=_TEXT)
    return texts.select(*columns).mapInArrow(_CountPart(count, part, is_lines), _WORDS)


def _sums(counted: Sequence[DataFrame]) -> DataFrame:
    """All words with their sums."""
    from pyspark.sql import DataFrame, functions

    rows = reduce(DataFrame.unionAll, counted)
    # A task gives each word once, so Spark need not add up before the shuffle, only after it.
    n_cores = rows.sparkSession.sparkContext.defaultParallelism
    n_sums = min(max(rows.rdd.getNumPartitions() // _TASKS_PER_SUM, n_cores), _MOST_SUMS)
    total = functions.sum("count").alias("count")
    return rows.repartition(n_sums, *_KEY).groupBy(*_KEY).agg(total)


def _collect(
    sums: DataFrame,
    count: CountPieces,
    *,
    weights: Sequence[float],
    names: Sequence[str],
    memory_bytes: int,
    folder: Path,
) -> Sums:
    """Run the job, and bring the sums to the driver, partition by partition."""
    from pyspark import StorageLevel

    packed = sums.mapInArrow(PackSums(), _PACKED).persist(StorageLevel.DISK_ONLY)
    try:
        # It fills the cache in parallel; the partitions are then read one after the other.
        figures = packed.where(f"kind = {FIGURES}").collect()
        collected = Sums(
            count.reader(BatchCorpus((), count)),
            [row.asDict() for row in figures],
            weights=weights,
            names=names,
            memory_bytes=memory_bytes,
            folder=folder,
        )
        rest = packed.where(f"kind != {FIGURES}").toLocalIterator(prefetchPartitions=True)
        for row in rest:
            collected.add(row.asDict())
    finally:
        packed.unpersist()
    return collected
