"""One tokenizer on all texts: counts, then every metric that is asked for, as rows.

Owns how each kind of formula becomes rows; the bootstrap is called once for all texts with the
same number of lines. Knows no metric by name, and of other subjects only the base's counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from vocabshift.errors import InvalidTokenizerError
from vocabshift.evaluation.lines.counts import Counts, count_lines
from vocabshift.evaluation.lines.subject import Engine
from vocabshift.evaluation.lines.token_facts import TokenFacts
from vocabshift.evaluation.lines.words import Bytes
from vocabshift.evaluation.metrics.bootstrap import Estimate, Terms, estimate
from vocabshift.evaluation.metrics.distribution import ALPHA, spread_estimate
from vocabshift.evaluation.metrics.linguistic import LinguisticTask, linguistic_rows
from vocabshift.evaluation.metrics.metric import LOSS, OfPair, OfVocabulary, OnText, Ratio, Spread
from vocabshift.evaluation.metrics.registry import METRICS
from vocabshift.evaluation.metrics.vocabulary import UsedVocabulary, Vocabulary
from vocabshift.results import WHOLE, Result

Int64 = npt.NDArray[np.int64]
Rows = dict[str, list[Result]]
"""Rows by metric."""


@dataclass(frozen=True, eq=False)
class Base:
    """What is kept of the base: its counts, the hashes of its tokens by id, its vocabulary."""

    counts: Mapping[str, Counts]
    token_hashes: Int64
    vocabulary: Vocabulary


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
    """One ratio over the lines of a language."""

    metric: str
    language: str
    on: OnText
    formula: Ratio
    terms: Terms


def measure_base(engine: Engine, task: Task) -> Base:
    """The side of the base, for tasks that compare with it."""
    facts = TokenFacts(engine)
    counts = _count("base", engine, facts, task, threads=1)
    return Base(counts, facts.hashes, Vocabulary(engine, facts))


def measure(subject: str, engine: Engine, task: Task, *, threads: int = 1) -> tuple[Rows, Int64]:
    """Rows of one subject by metric, and the hashes of its tokens for figures of two subjects.

    Rows of `loss_rate` are there for every language with a loss, asked for or not. Raises
    InvalidTokenizerError for a tokenizer that gives no token at all for a language.
    """
    facts = TokenFacts(engine)
    counts = _count(subject, engine, facts, task, threads)
    rows: Rows = {}
    for column, found in _estimated(_columns(engine, facts, counts, task)):
        row = _row(subject, column.language, column.metric, found, column.on.lines.n_lines)
        rows.setdefault(column.metric, []).append(row)
    n_tokens = [of_language.lines.n_tokens for of_language in counts.values()]
    vocabulary = Vocabulary(engine, facts)
    used = UsedVocabulary(vocabulary, counts, None if task.base is None else task.base.vocabulary)
    for name in task.metrics:
        formula = METRICS[name].formula
        if isinstance(formula, Spread):
            found = spread_estimate(formula.function, n_tokens)
            rows[name] = [_row(subject, WHOLE, name, found, len(n_tokens[0]))]
        elif isinstance(formula, OfVocabulary):
            rows[name] = [
                Result(subject, language, name, float(value), vocabulary.size)
                for language, value in formula.values(used).items()
            ]
    if task.linguistic is not None:
        encoded = {language: (found.ids, found.offsets) for language, found in counts.items()}
        for row in linguistic_rows(
            subject, engine, task.linguistic, encoded=encoded, threads=threads
        ):
            rows.setdefault(row.metric, []).append(row)
    is_paired = any(isinstance(METRICS[name].formula, OfPair) for name in task.metrics)
    return rows, vocabulary.hashes if is_paired else np.zeros(0, dtype=np.int64)


def _row(subject: str, language: str, metric: str, found: Estimate, n: int) -> Result:
    return Result(subject, language, metric, found.value, n, found.low, found.high)


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
    columns: list[_Column] = []
    for language, of_language in counts.items():
        base = task.base
        on = OnText(
            of_language,
            lambda: facts.hashes,
            engine.row_count,
            engine.tokenizer.vocab_size,
            task.renyi_alpha,
            None if base is None else base.counts[language],
            None if base is None else base.token_hashes,
            None if task.reference is None else counts[task.reference].lines,
        )
        losses = [LOSS] if of_language.lines.is_lost.any() else []
        for name in dict.fromkeys((*task.metrics, *losses)):
            formula = METRICS[name].formula
            if isinstance(formula, Ratio):
                terms = formula.terms(on)
                if not formula.may_lack or terms[1].any():
                    columns.append(_Column(name, language, on, formula, terms))
    return columns


def _estimated(columns: Sequence[_Column]) -> list[tuple[_Column, Estimate]]:
    """Each column with its finished estimate, in their order."""
    found: dict[int, Estimate] = {}
    by_lines: dict[int, list[int]] = {}
    for number, column in enumerate(columns):
        by_lines.setdefault(len(column.terms[0]), []).append(number)
    for numbers in by_lines.values():
        estimates = estimate([columns[number].terms for number in numbers])
        found |= dict(zip(numbers, estimates, strict=True))
    return [
        (column, column.formula.finish(column.on, found[number]))
        for number, column in enumerate(columns)
    ]
