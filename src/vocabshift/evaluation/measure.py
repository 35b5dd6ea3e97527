"""One tokenizer on all texts: counts, then every requested metric, as rows.

Owns how each kind of formula becomes rows. The bootstrap runs once for all texts with the same
number of lines. Metrics of a linguistic family share work and are computed together: texts are
prepared once for all subjects, and only for requested families. Knows no metric by name, and of
other subjects only the base's counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vocabshift.errors import CorpusError, InvalidTokenizerError
from vocabshift.evaluation.lines.counts import Counts, Ints, count_lines
from vocabshift.evaluation.lines.placing import flat_spans
from vocabshift.evaluation.lines.texts import Bytes
from vocabshift.evaluation.lines.token_facts import TokenFacts
from vocabshift.evaluation.lines.words import Cut
from vocabshift.evaluation.metrics import (
    code_switching,
    morph_score,
    numbers,
    robustness,
    syllable_alignment,
)
from vocabshift.evaluation.metrics.distribution import ALPHA, spread_estimate
from vocabshift.evaluation.metrics.metric import (
    LOSS,
    Estimate,
    OfPair,
    OfVocabulary,
    OnText,
    Ratio,
    Spread,
    Terms,
    estimate,
    ratio_rows,
)
from vocabshift.evaluation.metrics.morph_score import Morphemes
from vocabshift.evaluation.metrics.registry import METRICS
from vocabshift.evaluation.metrics.vocabulary import UsedVocabulary, Vocabulary
from vocabshift.results import WHOLE, Result, Results
from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.engine import Engine

Rows = dict[str, list[Result]]
"""Rows by metric."""


_ALIGNMENT, _NUMBERS, _ROBUSTNESS, _SWITCHING, _MORPHEMES = (
    frozenset(metric.name for metric in family.METRICS)
    for family in (syllable_alignment, numbers, robustness, code_switching, morph_score)
)


@dataclass(frozen=True, slots=True, eq=False)
class LinguisticTask:
    """What is measured of every subject; made by `prepare`."""

    metrics: frozenset[str]
    places: Mapping[str, syllable_alignment.CutPlaces]  # by language
    changed: Mapping[str, robustness.ChangedLines]
    mixed: Mapping[str, code_switching.MixedText]  # by pair
    words: Mapping[str, Sequence[Morphemes]]  # by language
    leading_space: bool = False


@dataclass(frozen=True, eq=False)
class Base:
    """What is kept of the base: its counts, the hashes of its tokens by id, its vocabulary."""

    counts: Mapping[str, Counts]
    token_hashes: Ints
    vocabulary: Vocabulary


@dataclass(frozen=True, eq=False)
class Task:
    """What is measured of every subject; `metrics` are names of `METRICS`."""

    metrics: Sequence[str]
    lines: Mapping[str, Sequence[str]]
    bins: Mapping[str, Bytes] = field(default_factory=dict)  # of every word, by language
    cuts: Mapping[str, Cut] = field(default_factory=dict)  # of languages without spaces
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


def doubts(tasks: Sequence[Task], measured: Results) -> Iterator[str]:
    """Sentences on ratios to a side that loses text: a base, or a language of reference."""
    bases = (task.base.counts.items() for task in tasks if task.base is not None)
    if lossy := [name for of_base in bases for name, found in of_base if found.lines.is_lost.any()]:
        yield (
            f"the base loses text of {', '.join(lossy)}: it is no measure of length there, and "
            "what is compared with it (normalized_sequence_length) says little"
        )
    lost = measured.where(metric=LOSS, language=tasks[0].reference) if tasks[0].reference else ()
    if subjects := [row.subject for row in lost if row.value > 0]:
        yield (
            f"{', '.join(subjects)} {'loses' if len(subjects) == 1 else 'lose'} text of "
            f"{tasks[0].reference}, which the premium is measured against; name another reference"
        )


def measure(subject: str, engine: Engine, task: Task, *, threads: int = 1) -> tuple[Rows, Ints]:
    """Rows of one subject by metric, and the hashes of its tokens for figures of two subjects.

    Rows of `loss_rate` are there for every language with a loss, asked for or not. Raises
    InvalidTokenizerError for a tokenizer that yields no token at all for a language.
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
        cut = task.cuts.get(language)
        found = count_lines(engine, facts, lines, bins=bins, cut=cut, threads=threads)
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
    for alike in by_lines.values():
        estimates = estimate([columns[number].terms for number in alike])
        found |= dict(zip(alike, estimates, strict=True))
    return [
        (column, column.formula.finish(column.on, found[number]))
        for number, column in enumerate(columns)
    ]


def prepare(
    metrics: Iterable[str],
    texts: Mapping[str, Sequence[str]],
    *,
    mixed: Mapping[str, code_switching.MixedText] | None = None,
    words: Mapping[str, Sequence[Morphemes]] | None = None,
    leading_space: bool = False,
) -> LinguisticTask:
    """The task of measuring `metrics`, of which those of other families are passed over.

    `texts`: lines by language, as `texts.read_lines` gives them; `mixed` is what
    `code_switching.mix` gives, `words` what `read_morphemes` does, by language. Prepares of the
    texts what the metrics need, once for all subjects. Raises CorpusError for a language without
    words.
    """
    empty = [language for language, rows in (words or {}).items() if not rows]
    if empty:
        raise CorpusError(f"no word of {', '.join(empty)}; leave it out or give it words")
    wanted = frozenset(metrics)
    return LinguisticTask(
        wanted,
        {
            language: syllable_alignment.cut_places(lines)
            for language, lines in texts.items()
            if wanted & _ALIGNMENT
        },
        {
            language: robustness.change_lines(lines)
            for language, lines in texts.items()
            if wanted & _ROBUSTNESS
        },
        (mixed or {}) if wanted & _SWITCHING else {},
        (words or {}) if wanted & _MORPHEMES else {},
        leading_space,
    )


def linguistic_rows(
    subject: str,
    engine: Engine,
    task: LinguisticTask,
    *,
    encoded: Mapping[str, tuple[Ids, Ints]] | None = None,
    threads: int = 1,
) -> list[Result]:
    """Rows of one subject: of the metrics of the task, those that say something.

    `encoded`: ids and offsets of the lines of languages, as `flat_spans` takes them, where known.
    """
    rows: list[Result] = []
    of_changes: list[Result] = []
    for language in dict.fromkeys((*task.places, *task.changed)):  # one at a time: less memory
        places, changed = task.places.get(language), task.changed.get(language)
        lines = places.lines if places is not None else task.changed[language].lines
        known = (encoded or {}).get(language)
        spans = flat_spans(engine, lines, encoded=known, threads=threads)
        if places is not None:
            found = syllable_alignment.alignment_terms(spans, places)
            rows += ratio_rows(language, {subject: found})
        if changed is not None:
            found = robustness.robustness_terms(engine, spans, changed, threads=threads)
            of_changes += ratio_rows(language, {subject: found})
    if task.metrics & _NUMBERS:
        rows += numbers.numbers({subject: engine}, threads=threads)
    rows += of_changes
    for pair, mixed in task.mixed.items():
        found = code_switching.code_switching_terms(engine, mixed, threads=threads)
        rows += ratio_rows(pair, {subject: found})
    for language, words in task.words.items():
        found = morph_score.morph_terms(
            engine, words, leading_space=task.leading_space, threads=threads
        )
        rows += ratio_rows(language, {subject: found})
    return [row for row in rows if row.metric in task.metrics]
