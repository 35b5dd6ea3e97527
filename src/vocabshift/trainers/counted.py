"""The superword stage from counts: words and runs that were counted elsewhere, perhaps in parts.

Owns the plan under which runs are counted, made from stage 1 and the rule of stage 2, and training
on a folder of runs. The merges are those of training on the text itself
(docs/algorithms/superwords.md).
"""

from __future__ import annotations

from vocabshift import _core
from vocabshift.engines.borders import RunPlan
from vocabshift.errors import BoundTooHighError, CorpusError
from vocabshift.text.counting import CountReader
from vocabshift.text.patterns import Pattern, pattern_name
from vocabshift.text.run_folder import AGAIN, RunFolder
from vocabshift.trainers.base import Reader, RunContext
from vocabshift.trainers.stages import Stage, SuperwordRule


def holds_words(reader: Reader, pieces: Pattern) -> bool:
    """Whether a reader reads counted words, and not the counted pre-tokens of stage 2."""
    return isinstance(reader, CountReader) and reader.folder.pattern != pieces


def require_words(reader: CountReader, pieces: Pattern, words: Pattern) -> None:
    """Raise CorpusError unless the folder of counts holds words, cut by both patterns."""
    if not holds_words(reader, pieces):
        name = pattern_name((*pieces, *words))
        raise CorpusError(
            f"{reader.folder.path} counts whole pre-tokens of stage 2, which need no runs; leave "
            "the runs out, or count words instead"
            + ("" if name is None else f" (vocabshift count --pattern {name})")
        )


def runs_of(reader: Reader, pieces: Pattern) -> RunFolder | None:
    """Return the runs on which stage 2 is to be learned; None if the reader has its pre-tokens.

    CorpusError for counted words without runs, and for runs beside counted pre-tokens.
    """
    if not isinstance(reader, CountReader):
        return None
    runs = reader.folder.runs
    if runs is not None:
        require_words(reader, pieces, reader.folder.pattern[len(pieces) :])
    elif holds_words(reader, pieces):
        raise CorpusError(
            f"{reader.folder.path} counts words, which say nothing of their neighbours; "
            "count the runs of the same text too (vocabshift count --runs) and name them with "
            "--runs"
        )
    return runs


def run_plan(reader: CountReader, words: Stage, rule: SuperwordRule, pieces: Pattern) -> RunPlan:
    """Return the plan under which runs are counted; CorpusError for a language of two weights."""
    languages = [group.language for group in reader.groups]
    twice = sorted({str(label) for label in languages if languages.count(label) > 1})
    if twice:
        raise CorpusError(
            f"{', '.join(twice)}: a language with several weights, and runs are counted by "
            "language; give it one weight, or several labels"
        )
    return RunPlan(
        tokens=tuple(words.tokens),
        merges=words.merges,
        pattern=pieces,
        normalizer=reader.folder.normalizer,
        special_tokens=reader.special_tokens,
        weights=dict(zip(languages, reader.fixed_point_weights(), strict=True)),
        terminals=rule.terminals,
        sentences=rule.sentences,
        superwords=max(rule.vocab_size - len(words.tokens), 1),
        min_count=reader.min_count(rule.min_frequency, rule.unit),
    )


def learn_counted(
    reader: CountReader, plan: RunPlan, rule: SuperwordRule, runs: RunFolder, context: RunContext
) -> Stage:
    """Continue the vocabulary of the plan with superwords from counted runs.

    CorpusError for runs under another plan or of other text, or damaged ones; BoundTooHighError if
    they lack some that are needed.
    """
    runs.require(plan.settings)
    of_words = reader.folder.language_bytes()
    of_runs = {group.language: group.bytes for group in runs.groups}
    if of_words != of_runs:
        raise CorpusError(
            f"{reader.folder.path} counts words of other text than {runs.path}: by language, "
            f"{of_words} and {of_runs} bytes; {AGAIN}, on the text of the words"
        )
    with context.watch.phase("stage 2"):
        counted = _read(plan, runs, context)
        try:
            trained = counted.train(
                [plan.weights[group.language] for group in runs.groups],
                rule.vocab_size,
                plan.min_count,
                rule.to_core(),
                bound=runs.bound,
                tokens=runs.tokens,
                threads=context.threads,
                progress=context.in_phase("stage 2"),
            )
        except ValueError as error:
            raise CorpusError(f"{runs.path} cannot be trained on ({error}); {AGAIN}") from error
    if trained.stopped is _core.Stopped.FLOOR:
        lower = _core.lower_bound(runs.bound, len(trained.merges), plan.superwords)
        raise BoundTooHighError(
            f"{runs.path} holds the runs between borders that count at least {runs.bound:,}, and "
            f"with these only {len(trained.merges):,} of {plan.superwords:,} superwords can be "
            f"learned; count the runs again with a lower bound, such as --bound {lower}",
            lower,
        )
    return Stage.of(trained, rule.min_frequency)


def _read(plan: RunPlan, runs: RunFolder, context: RunContext) -> _core.CountedRuns:
    """Load the runs; CorpusError for damaged ones, or more than the memory budget has room for."""
    budget = context.share_of_memory(0.5)
    counted = _core.CountedRuns(list(plan.tokens), len(runs.groups), plan.sentences is not None)
    for group in range(len(runs.groups)):
        for data, ends, counts in runs.read(group):
            try:
                counted.add(data, ends, counts, group)
            except ValueError as error:
                raise CorpusError(f"{runs.path} is damaged ({error}); {AGAIN}") from error
            if budget and counted.memory_bytes > budget:
                raise CorpusError(
                    f"the runs of {runs.path} do not fit into half of the memory budget "
                    f"({budget:,} bytes); give more, or count runs with a higher --bound"
                )
    return counted
