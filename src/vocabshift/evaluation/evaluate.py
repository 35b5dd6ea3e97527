"""evaluate: tokenizers and texts in, Results out.

Owns the order of things: check what is asked for, read the texts, measure subject by subject, put
the rows in order. Knows nothing of how a line is counted or a table is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import CorpusError
from vocabshift.evaluation import frequency_bins
from vocabshift.evaluation.distribution import ALPHA, check_alpha
from vocabshift.evaluation.engine import engine_of
from vocabshift.evaluation.fairness import find_reference
from vocabshift.evaluation.measure import Rows, Task, measure, measure_base
from vocabshift.evaluation.metrics import BASE_METRIC, BIN_METRICS, EVERY, METRICS, check_names
from vocabshift.evaluation.subject import Subject, subjects
from vocabshift.evaluation.texts import ALL, Lines, check_parallel, files_of, read_lines
from vocabshift.evaluation.vocabulary import overlap
from vocabshift.results import Result, Results

DEFAULT_METRICS = ("fertility", "bytes_per_token")

Progress = Callable[[str, int, int | None], None]
"""Called as (phase, done, total)."""


def evaluate(
    tokenizers: Any,
    texts: Any,
    metrics: str | Sequence[str] | None = None,
    *,
    base: Any = None,
    reference: str | None = None,
    frequencies: Any = None,
    renyi_alpha: float = ALPHA,
    parallel: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> Results:
    """Measure tokenizers on texts, per language.

    `tokenizers`: one tokenizer, or a list or tuple of them, or a mapping of names to them; each a
    `Tokenizer`, transformers fast tokenizer, `tokenizers.Tokenizer`, `tiktoken.Encoding`, path or
    Hub name, of type BPE, Unigram or WordPiece. `texts`: a `Corpus` or {language: iterable of
    str}; documents are cut into lines, blank ones are skipped, no BOS or EOS is added.

    `metrics`: names of `vocabshift.evaluation.metrics.METRICS`; by default ("fertility",
    "bytes_per_token"), and "normalized_sequence_length" too where a `base` tokenizer is given;
    "all" is every metric that the input allows. What it does not allow is told to `note`.
    `reference`: the language of "premium", English by default. `frequencies`: a corpus of every
    language that "fertility_bin_…" ranks words by, instead of the texts. `renyi_alpha`: order of
    Rényi's entropy. `parallel` states that line n of all texts says the same, so that a difference
    in length is an error whatever the metrics. `threads` changes the time, never the result.

    Rows come by metric, then language, then subject; figures over lines have their 95 % bootstrap
    interval and `n` lines, those of a vocabulary are under "all" (or a script, or another
    subject) and `n` is its size. Rows of "loss_rate" are added wherever a tokenizer does not give
    a line back. Raises ValueError for an unknown metric, or for one that needs a base where none
    is given; CorpusError for an empty language, or texts that are not parallel.
    """
    if metrics is None:
        metrics = DEFAULT_METRICS if base is None else (*DEFAULT_METRICS, BASE_METRIC)
    names = check_names(metrics)
    is_every = EVERY in ((metrics,) if isinstance(metrics, str) else tuple(metrics))
    asked = () if is_every else names
    _check_base(asked, base)
    check_alpha(renyi_alpha)
    judged = subjects(tokenizers)
    lines = read_lines(texts)
    files = files_of(texts)
    if parallel:
        check_parallel(lines, "--parallel (parallel=True)", files)
    refused = _not_allowed(
        names, lines, files, base=base, reference=reference, n_subjects=len(judged)
    )
    for name, error in refused.items():
        if not is_every:
            raise error
        if note is not None:
            note(f"{name} is left out: {error}")
    names = tuple(name for name in names if name not in refused)
    task = Task(
        names,
        lines,
        _bins(lines, frequencies) if set(names) & set(BIN_METRICS) else {},
        reference=find_reference(list(lines), reference) if "premium" in names else None,
        renyi_alpha=renyi_alpha,
    )
    if base is not None:
        engine = engine_of(subjects(base)[0].tokenizer)
        task = Task(
            task.metrics,
            task.lines,
            task.bins,
            measure_base(engine, task),
            task.reference,
            renyi_alpha,
        )
    measured = _measure_all(judged, task, threads, progress)
    return _in_order(names, list(lines), [subject.name for subject in judged], measured)


def _check_base(names: Sequence[str], base: Any) -> None:
    lacking = [name for name in names if METRICS[name].needs_base and base is None]
    if lacking:
        raise ValueError(f"{lacking[0]} compares with a base tokenizer; give one as base")


def _not_allowed(
    names: Sequence[str],
    lines: Lines,
    files: dict[str, str],
    *,
    base: Any,
    reference: str | None,
    n_subjects: int,
) -> dict[str, ValueError]:
    """Metrics that this input does not allow, and why."""
    refused: dict[str, ValueError] = {}
    for name in names:
        try:
            _check_base((name,), base)
            if METRICS[name].needs_parallel:
                if len(lines) < 2:
                    raise CorpusError(f"{name} compares languages; give texts of at least two")
                check_parallel(lines, name, files)
            if name == "premium":
                find_reference(list(lines), reference)
            if name == "pairwise_overlap" and n_subjects < 2:
                raise ValueError("pairwise_overlap compares subjects; give at least two")
        except ValueError as error:
            refused[name] = error
    return refused


def _bins(lines: Lines, frequencies: Any) -> dict[str, frequency_bins.Bytes]:
    """Bin of every word by language, from the text itself or from another corpus."""
    known = lines if frequencies is None else read_lines(frequencies)
    lacking = [language for language in lines if language not in known]
    if lacking and list(known) != [ALL]:
        raise CorpusError(
            f"the frequencies hold no text of {', '.join(lacking)}; add it, or one corpus without "
            "a label for all languages"
        )
    found = {}
    for language, of_language in lines.items():
        words = frequency_bins.count_words(known.get(language) or known[ALL])
        ranked = frequency_bins.bins_of_words(words)
        found[language] = frequency_bins.bins_of_lines(of_language, ranked)
    return found


def _measure_all(
    judged: Sequence[Subject], task: Task, threads: int, progress: Progress | None
) -> list[tuple[Rows, npt.NDArray[np.int64]]]:
    """What `measure` gives for each subject, in order; several at a time."""
    workers = min(threads, len(judged))

    def one(subject: Subject) -> tuple[Rows, npt.NDArray[np.int64]]:
        engine = engine_of(subject.tokenizer)
        return measure(subject.name, engine, task, threads=max(1, threads // workers))

    done = []
    with ThreadPoolExecutor(workers) as pool:
        for found in map(one, judged) if workers == 1 else pool.map(one, judged):
            done.append(found)
            if progress is not None:
                progress("tokenizers", len(done), len(judged))
    return done


def _in_order(
    names: Sequence[str],
    languages: Sequence[str],
    labels: Sequence[str],
    measured: Sequence[tuple[Rows, npt.NDArray[np.int64]]],
) -> Results:
    """Rows by metric, then language in the order of the texts, then subject."""
    by_metric: dict[str, list[Result]] = {name: [] for name in names}
    for rows, _ in measured:
        for name, of_metric in rows.items():
            by_metric.setdefault(name, []).extend(of_metric)
    if "pairwise_overlap" in names:
        hashes = [found for _, found in measured]
        by_metric["pairwise_overlap"] = [
            Result(one, other, "pairwise_overlap", overlap(ours, theirs), len(ours))
            for other, theirs in zip(labels, hashes, strict=True)
            for one, ours in zip(labels, hashes, strict=True)
            if one != other
        ]
    place = {language: number for number, language in enumerate((*languages, ALL))}
    return Results(
        row
        for of_metric in by_metric.values()
        for row in sorted(of_metric, key=lambda row: place.get(row.language, len(place)))
    )
