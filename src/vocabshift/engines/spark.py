"""Counting on Spark: text is cut into words where it lies, and only sums travel.

`count_words` does it for a DataFrame: `mapInArrow` counts each partition, and Spark adds up the
words. `write_words` writes the sums as a folder of counts. `count_on_spark` does both for the SPECs
of the command line, and `passes_on_spark` runs the passes for superwords on them. The driver needs
no storage that it shares with the executors.

Needs the extra `vocabshift[spark]` and a Java runtime. pyspark is imported only when it is used.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vocabshift.engines.borders import SketchBorders
from vocabshift.engines.rows import BadRows, BatchCorpus, RowOptions
from vocabshift.engines.runs import CountRuns
from vocabshift.engines.spark_files import files_of
from vocabshift.engines.spark_jobs import Texts, add_up, as_batch, collect, read_texts, texts_of
from vocabshift.engines.spark_session import SparkSettings, clear_errors, open_session
from vocabshift.engines.sums import Sums
from vocabshift.engines.words import CountPieces
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.readers import FileSource, RemoteSource
from vocabshift.text.selection import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DRIVER_BYTES = 1 << 30
"""Budget of the driver for words or runs where none is given."""


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
    count = count or CountPieces()
    found = texts_of(texts, count)
    return add_up([found.call(_with_rows(count, found.rows), 0)]).drop("part")


def write_words(
    words: DataFrame,
    out: str | Path,
    count: CountPieces | None = None,
    *,
    memory_bytes: int = DRIVER_BYTES,
    force: bool = False,
) -> dict[str, Any]:
    """Write what `count_words` returned as a folder of counts on the driver.

    count: the one that counted. memory_bytes: of words, on the driver; others go to disk.

    Returns the keys of `vocabshift count --engine spark --json`. FileExistsError if `out` exists,
    without `force`; CorpusError if there is no text.
    """
    from pyspark.sql import functions

    count = count or CountPieces()
    with outcome("count", out, force=force) as output, clear_errors():
        sums = Sums(
            count.reader(BatchCorpus((), count)),
            weights=[count.weight],
            names=["texts"],
            memory_bytes=memory_bytes,
            folder=output.folder,
        )
        for row in collect(words.select(functions.lit(0).alias("part"), "*")):
            sums.add(row)
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
    sums = Sums(
        count.reader(BatchCorpus((), count)),
        weights=[part.weight for part in corpus.parts],
        names=[part.name for part in corpus.parts],
        memory_bytes=memory_bytes,
        folder=folder,
    )
    with _texts_on_spark(corpus, options) as parts:
        words = [
            texts.call(_with_rows(count, texts.rows), number)
            for number, part in enumerate(parts)
            for texts in part
        ]
        for row in collect(add_up(words)):
            sums.add(row)
    sums.require(corpus.languages)
    sums.write()
    return sums.figures


@contextmanager
def passes_on_spark(
    corpus: Corpus, options: SparkOptions
) -> Iterator[Callable[[SketchBorders | CountRuns], Iterable[Any]]]:
    """A function that runs the passes for superwords over a corpus of files, on one session.

    It returns the summed rows as record batches. Bad rows are left out if `options` keep them, as
    they were when the words were counted. Errors as for `count_on_spark`.
    """
    with _texts_on_spark(corpus, options) as parts:

        def run(job: SketchBorders | CountRuns) -> Iterator[Any]:
            is_sketch = isinstance(job, SketchBorders)
            words = [
                texts.call(_with_rows(job, texts.rows), 0, in_few_tasks=is_sketch)
                for texts in chain.from_iterable(parts)
            ]
            for row in collect(add_up(words), of_text=False):
                yield as_batch(row, "cell" if is_sketch else "run")

        yield run


@contextmanager
def _texts_on_spark(corpus: Corpus, options: SparkOptions) -> Iterator[list[list[Texts]]]:
    """The texts of each part of a corpus, on a session that is open meanwhile."""
    column = options.language_column
    readable = [files_of(part, column) for part in corpus.parts]  # errors before Spark starts
    with open_session(options) as session, clear_errors():
        yield [
            [read_texts(session, files, _rows_of(part, options)) for files in readable[number]]
            for number, part in enumerate(corpus.parts)
        ]


def _rows_of(part: Part, options: SparkOptions) -> RowOptions:
    assert isinstance(part.source, FileSource | RemoteSource)
    return RowOptions(
        text=part.source.column or RowOptions.text,
        language=options.language_column if part.language is None else None,
        label=part.language,
        weight=part.weight,
        errors=part.source.errors,
        bad_rows=options.bad_rows,
    )


def _with_rows(job: Any, rows: RowOptions) -> Any:
    """The same job for texts in other columns."""
    if isinstance(job, CountPieces):
        return replace(job, **{field.name: getattr(rows, field.name) for field in fields(rows)})
    job = copy.copy(job)
    job.rows = rows
    return job
