"""One tokenizer on all texts: counts, then every metric that is asked for, as rows.

Owns what is computed of a subject and by which file; the bootstrap is called once for all texts
with the same number of lines. Knows nothing of other subjects but the base's counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from vocabshift.errors import InvalidTokenizerError
from vocabshift.evaluation import counts as drift
from vocabshift.evaluation.counts import Counts, count_lines
from vocabshift.evaluation.linguistic.families import LinguisticTask, linguistic_rows
from vocabshift.evaluation.metrics import BIN_METRICS, LOSS, METRICS, terms
from vocabshift.evaluation.spans.token_facts import TokenFacts
from vocabshift.evaluation.spans.words import Bytes
from vocabshift.evaluation.statistics import distribution as fairness
from vocabshift.evaluation.statistics.bootstrap import Estimate, Terms, estimate
from vocabshift.evaluation.statistics.distribution import ALPHA, renyi
from vocabshift.evaluation.subject import Engine
from vocabshift.evaluation.texts import ALL
from vocabshift.evaluation.vocabulary import Vocabulary, overlap
from vocabshift.results import Result

Int64 = npt.NDArray[np.int64]
Rows = dict[str, list[Result]]
"""Rows by metric."""


@dataclass(frozen=True, eq=False)
class Base:
    """What is kept of the base: its counts and its vocabulary."""

    counts: Mapping[str, Counts]
    token_hashes: Int64  # by id
    hashes: Int64  # of its vocabulary
    hashes_by_script: Mapping[str, Int64]


@dataclass(frozen=True, eq=False)
class Task:
    """What is measured of every subject; `metrics` are names of `METRICS`."""

    metrics: Sequence[str]
    lines: Mapping[str, Sequence[str]]
    bins: Mapping[str, Bytes] = field(default_factory=dict)  # of every word, by language
    base: Base | None = None
    reference: str | None = None  # language of the premium
    renyi_alpha: float = ALPHA
    linguistic: LinguisticTask | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    """One ratio over lines, and what becomes of its estimate."""

    metric: str
    language: str
    terms: Terms
    finish: Callable[[Estimate], Estimate] = lambda found: found


def measure_base(engine: Engine, task: Task) -> Base:
    """The side of the base, for tasks that compare with it."""
    facts = TokenFacts(engine)
    counts = _count("base", engine, facts, task, threads=1)
    vocabulary = Vocabulary(engine, facts)
    by_script = vocabulary.hashes_by_script() if "vocabulary_overlap" in task.metrics else {}
    return Base(counts, facts.hashes, vocabulary.hashes(), by_script)


def measure(subject: str, engine: Engine, task: Task, *, threads: int = 1) -> tuple[Rows, Int64]:
    """Rows of one subject by metric, and the hashes of its tokens for overlaps among subjects.

    Rows of `loss_rate` are there for every language with a loss, asked for or not. Raises
    InvalidTokenizerError for a tokenizer that gives no token at all for a language.
    """
    facts = TokenFacts(engine)
    counts = _count(subject, engine, facts, task, threads)
    rows: Rows = {}
    for column, found in _estimated(_columns(engine, facts, counts, task)):
        n_lines = counts[column.language].lines.n_lines
        rows.setdefault(column.metric, []).append(
            Result(
                subject,
                column.language,
                column.metric,
                found.value,
                n_lines,
                found.low,
                found.high,
            )
        )
    rows |= _spread_rows(subject, counts, task)
    if task.linguistic is not None:
        encoded = {language: (found.ids, found.offsets) for language, found in counts.items()}
        for row in linguistic_rows(
            subject, engine, task.linguistic, encoded=encoded, threads=threads
        ):
            rows.setdefault(row.metric, []).append(row)
    vocabulary = Vocabulary(engine, facts)
    for name, values in _vocabulary_values(vocabulary, counts, task).items():
        rows[name] = [
            Result(subject, language, name, float(value), vocabulary.size)
            for language, value in values.items()
        ]
    wants_hashes = "pairwise_overlap" in task.metrics
    return rows, vocabulary.hashes() if wants_hashes else np.zeros(0, dtype=np.int64)


def _count(
    subject: str, engine: Engine, facts: TokenFacts, task: Task, threads: int
) -> dict[str, Counts]:
    counts = {}
    for language, lines in task.lines.items():
        bins = task.bins.get(language)
        found = count_lines(engine, facts, lines, bins=bins, threads=threads)
        if not len(found.ids):
            raise InvalidTokenizerError(
                f"{subject} gives no token for any line of {language}; it cannot be measured there"
            )
        counts[language] = found
    return counts


def _columns(
    engine: Engine, facts: TokenFacts, counts: Mapping[str, Counts], task: Task
) -> list[_Column]:
    """Every ratio over lines that is asked for, language by language."""
    wanted = [name for name in task.metrics if METRICS[name].family in _OVER_LINES]
    wants_drift = any(METRICS[name].family == "drift" for name in wanted)
    columns: list[_Column] = []
    for language, of_language in counts.items():
        names = [*wanted, LOSS] if of_language.lines.is_lost.any() else wanted
        columns += _ratios(names, language, counts, task)
        columns += _distribution(names, language, engine, of_language, task.renyi_alpha)
        if wants_drift:
            columns += _drift(names, language, of_language, facts.hashes, task)
    return columns


def _ratios(
    names: Sequence[str], language: str, counts: Mapping[str, Counts], task: Task
) -> list[_Column]:
    """Ratios, frequency bins and the premium; no bin where the text has no word of it."""
    lines = counts[language].lines
    base = None if task.base is None else task.base.counts[language].lines
    columns = []
    for name in dict.fromkeys(names):
        if METRICS[name].family in ("ratio", "base", "frequency bin"):
            found = terms(name, lines, base)
        elif METRICS[name].family == "premium":
            found = (lines.n_tokens, counts[str(task.reference)].lines.n_tokens)
        else:
            continue
        if name not in BIN_METRICS or found[1].any():
            columns.append(_Column(name, language, found))
    return columns


def _distribution(
    names: Sequence[str], language: str, engine: Engine, counts: Counts, alpha: float
) -> list[_Column]:
    if not {"renyi_entropy", "renyi_efficiency"} & set(names):
        return []
    found = renyi(counts, engine.row_count, alpha)
    scales = {
        "renyi_entropy": 1.0,
        # Of one token alone the entropy is 0 as well.
        "renyi_efficiency": math.log2(engine.tokenizer.vocab_size) or 1.0,
    }
    return [
        _Column(name, language, found.terms, partial(found.estimate, scale=scale))
        for name, scale in scales.items()
        if name in names
    ]


def _drift(
    names: Sequence[str], language: str, counts: Counts, hashes: Int64, task: Task
) -> list[_Column]:
    assert task.base is not None, "checked before anything is read"
    pairs = drift.paired(counts, hashes, task.base.counts[language], task.base.token_hashes)
    ones = np.ones(len(pairs), dtype=np.int64)
    compare = {"levenshtein_distance": drift.distances, "exact_match_rate": drift.same_lines}
    return [
        _Column(name, language, (function(pairs), ones))
        for name, function in compare.items()
        if name in names
    ]


_OVER_LINES = ("ratio", "base", "frequency bin", "distribution", "premium", "drift")
"""Families whose figures are ratios over lines, or follow from one."""


def _estimated(columns: Sequence[_Column]) -> list[tuple[_Column, Estimate]]:
    """Each column with its finished estimate, in their order."""
    found: dict[int, Estimate] = {}
    by_lines: dict[int, list[int]] = {}
    for number, column in enumerate(columns):
        by_lines.setdefault(len(column.terms[0]), []).append(number)
    for numbers in by_lines.values():
        estimates = estimate([columns[number].terms for number in numbers])
        found |= dict(zip(numbers, estimates, strict=True))
    return [(column, column.finish(found[number])) for number, column in enumerate(columns)]


def _spread_rows(subject: str, counts: Mapping[str, Counts], task: Task) -> Rows:
    names = [name for name in task.metrics if METRICS[name].family == "fairness"]
    if not names:
        return {}
    n_tokens = [of_language.lines.n_tokens for of_language in counts.values()]
    found = zip(names, fairness.spread(names, n_tokens), strict=True)
    return {
        name: [Result(subject, ALL, name, e.value, len(n_tokens[0]), e.low, e.high)]
        for name, e in found
    }


def _vocabulary_values(
    vocabulary: Vocabulary, counts: Mapping[str, Counts], task: Task
) -> dict[str, dict[str, float]]:
    """Figures by metric, then by language, script or "all"."""
    wanted = [name for name in task.metrics if METRICS[name].family == "vocabulary"]
    values: dict[str, dict[str, float]] = {}
    if {"language_share", "own_language_share"} & set(wanted):
        shares = vocabulary.language_shares(counts)
        for number, name in enumerate(("language_share", "own_language_share")):
            values[name] = {language: pair[number] for language, pair in shares.items()}
    compute: dict[str, Callable[[], dict[str, float]]] = {
        "vocabulary_overlap": lambda: _overlaps(vocabulary, task.base),
        "vocab_size": lambda: {ALL: vocabulary.size},
        "script_share": vocabulary.script_shares,
        "superword_share": lambda: {ALL: vocabulary.superword_share()},
        "terminal_spanning_count": lambda: {ALL: vocabulary.terminal_spanning_count()},
        "unused_share": lambda: {ALL: vocabulary.unused_share(counts)},
    }
    values |= {name: compute[name]() for name in wanted if name in compute}
    return {name: values[name] for name in wanted if name in values}


def _overlaps(vocabulary: Vocabulary, base: Base | None) -> dict[str, float]:
    """With the base: of the whole vocabularies, then by script where both have the script."""
    assert base is not None, "checked before anything is read"
    found = {ALL: overlap(vocabulary.hashes(), base.hashes)}
    for script, hashes in sorted(vocabulary.hashes_by_script().items()):
        if script in base.hashes_by_script:
            found[script] = overlap(hashes, base.hashes_by_script[script])
    return found
