"""Count the runs of tokens on which superwords are trained: what `vocabshift count --runs` does.

Owns the order of the passes, and that the runs suffice: the second stage is trained on them once,
and where they were cut too short they are counted again with a lower bound. The passes run here,
or wherever the caller's `engine` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vocabshift.engines.borders import Borders, SketchBorders
from vocabshift.engines.runs import MEMORY_BYTES, CountRuns, RunSums
from vocabshift.engines.spark import DRIVER_BYTES, SparkOptions, passes_on_spark
from vocabshift.errors import BoundTooHighError, CorpusError
from vocabshift.progress import Progress, in_phase
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.run_folder import RunFolder
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.recipes import make_trainer, require_takes_runs
from vocabshift.trainers.superword import SuperwordTrainer

Job = SketchBorders | CountRuns

Engine = Callable[[Job], Iterable[Any]]
"""Calls a job on record batches of all text, in any parts, and returns the rows of all calls; these
may have been summed by their key."""


def trainer_for(recipe: str, options: Mapping[str, Any], words: CountFolder) -> SuperwordTrainer:
    """The trainer of a recipe; normalizer and special tokens are those of the words by default.

    ValueError for an unknown option, and for a recipe that does not learn from runs.
    """
    require_takes_runs(recipe)
    of_words = {"normalizer": words.normalizer, "special_tokens": words.special_tokens}
    trainer = make_trainer(recipe, of_words | dict(options))
    assert isinstance(trainer, SuperwordTrainer)
    return trainer


def count_runs_to_folder(
    corpus: Corpus | Engine,
    words: str | Path | CountFolder,
    recipe: str,
    options: Mapping[str, Any],
    out: str | Path,
    *,
    bound: int | None = None,
    memory_bytes: int = 0,
    threads: int = 1,
    spark: SparkOptions | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Count the runs of a corpus whose words were counted, for the superwords of a recipe.

    corpus: the text of the words; or an engine that has it.
    words: what `vocabshift count` wrote under the patterns of the recipe's stages 2 and 1, one
        after the other ("ist-stage2+o200k").
    recipe, options: as training will get them. Options that change stage 1 or its pattern must be
        the same there; those of stage 2 alone may differ, if the runs hold enough.
    bound: cut at borders that count less (weighted); None: found by trial, so that the runs hold
        all that is needed.
    memory_bytes: budget for the runs of a pass and for the sums; 0: no limit, or 1 GB for the sums
        on Spark's driver.
    spark: run the passes over the corpus on Spark, with these options.
    progress: called with the phase, the work done and the total.

    Returns the keys of `vocabshift count --runs --json`. CorpusError if the text is not that of the
    words; BoundTooHighError for a given bound that is too high.
    """
    folder = words if isinstance(words, CountFolder) else CountFolder.open(words)
    trainer = trainer_for(recipe, options, folder)
    inputs = [folder, corpus] if isinstance(corpus, Corpus) else [folder]
    with (
        outcome("count", out, inputs=inputs, force=force) as output,
        _engine(corpus, folder, spark, threads, progress) as engine,
    ):
        context = RunContext(
            threads=threads, progress=progress, memory_bytes=memory_bytes, folder=output.folder
        )
        plan = trainer.plan_runs(folder, context)
        borders = Borders.sum(plan, engine(SketchBorders(plan)))
        tried = bound or borders.guess_bound()
        for_sums = memory_bytes // 2 or (0 if spark is None else DRIVER_BYTES)
        passes = 0
        while True:
            passes += 1
            job = CountRuns(plan, borders, tried, memory_bytes=memory_bytes // 2 or MEMORY_BYTES)
            sums = RunSums(job, memory_bytes=for_sums, spill_folder=output.folder)
            for batch in engine(job):
                sums.add(batch)
            sums.write(output.folder)
            runs = RunFolder.open(output.folder)
            try:
                stage = trainer.train_runs(plan, folder, runs, context)
                break
            except BoundTooHighError as error:
                if bound is not None:
                    raise
                tried = error.lower
    return {
        "out": str(out),
        "recipe": recipe,
        "stage1_tokens": len(plan.tokens),
        "superwords": len(stage.merges),
        "passes": passes,
        **runs.figures,
    }


@contextmanager
def _engine(
    corpus: Corpus | Engine,
    words: CountFolder,
    spark: SparkOptions | None,
    threads: int,
    progress: Progress | None,
) -> Iterator[Engine]:
    """What runs the passes over a corpus."""
    if not isinstance(corpus, Corpus):
        yield corpus
        return
    _check_weights(corpus, words)
    if spark is None:
        yield _here(corpus, threads, progress)
        return
    with passes_on_spark(corpus, spark) as engine:
        yield engine


def _check_weights(corpus: Corpus, words: CountFolder) -> None:
    """CorpusError for a language whose weight is another one in the counts."""
    of_words = {group.language: group.weight for group in words.groups}
    for part in corpus.parts:
        weight = of_words.get(part.language, part.weight)
        if part.weight != weight:
            raise CorpusError(
                f"{part.language or 'the text'} has the weight {part.weight:g}, and {weight} in "
                f"{words.path}; give the weights of the words"
            )


def _here(corpus: Corpus, threads: int, progress: Progress | None) -> Engine:
    """Run the passes over a corpus in this process."""

    def run(job: Job) -> Iterable[Any]:
        name = "borders" if isinstance(job, SketchBorders) else "runs"
        reader = job.plan.read(corpus)
        return job.of(reader, threads=threads, progress=in_phase(progress, name))

    return run
