"""Counts of words and runs of small texts, as `count` and `count --runs` make them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from vocabshift.engines import Borders, CountRuns, RowOptions, RunPlan, RunSums, SketchBorders
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder, write_counts
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import get_pattern
from vocabshift.text.run_folder import RunFolder
from vocabshift.trainers.superword import SuperwordTrainer

LABELLED = RowOptions(language="language")

Rows = Sequence[tuple[str | None, str]]
"""(language, document)."""


def count_words(corpus: Corpus, trainer: SuperwordTrainer, folder: Path) -> CountFolder:
    """The words of a corpus, under the patterns of stages 2 and 1."""
    folder.mkdir()
    pattern = (*get_pattern(trainer.stage2_pre_tokenizer), *get_pattern(trainer.pre_tokenizer))
    reader = CorpusReader(
        corpus, pattern, trainer.normalizer, trainer.special_tokens, by_language=True
    )
    write_counts(reader.count_words(), reader, folder)
    return CountFolder.open(folder)


def batch_of(rows: Rows) -> Any:
    """A record batch of (language, document)."""
    labels, texts = zip(*rows, strict=True) if rows else ((), ())
    columns = [pa.array(labels, pa.string()), pa.array(texts, pa.string())]
    return pa.record_batch(columns, names=["language", "text"])


def call(job: Any, parts: Sequence[Sequence[Rows]]) -> list[Any]:
    """The rows of a job that was sent to several machines, with batches of text for each."""
    sent = pickle.dumps(job)
    return [out for part in parts for out in pickle.loads(sent)(map(batch_of, part))]


def sketch(plan: RunPlan, parts: Sequence[Sequence[Rows]]) -> Borders:
    """The summed sketch of all parts."""
    return Borders.sum(plan, call(SketchBorders(plan, LABELLED), parts))


def count_runs(
    borders: Borders, bound: int, parts: Sequence[Sequence[Rows]], folder: Path, **options: Any
) -> RunFolder:
    """The summed runs of all parts, as a folder."""
    job = CountRuns(borders.plan, borders, bound, LABELLED, **options)
    sums = RunSums(job)
    for batch in call(job, parts):
        sums.add(batch)
    folder.mkdir()
    sums.write(folder)
    return RunFolder.open(folder)
