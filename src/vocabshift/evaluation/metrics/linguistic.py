"""The linguistic families together: what is prepared of the texts once, and the rows of a subject.

Owns which family needs what, and that texts are prepared only for metrics that are asked for: the
metrics of a family share that work, so they are computed together (`metric.WithFamily`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.counts import Ints
from vocabshift.evaluation.lines.placing import flat_spans
from vocabshift.evaluation.lines.subject import Engine
from vocabshift.evaluation.metrics import (
    code_switching,
    morph_score,
    numbers,
    robustness,
    syllable_alignment,
)
from vocabshift.evaluation.metrics.bootstrap import ratio_rows
from vocabshift.evaluation.metrics.morph_score import Morphemes
from vocabshift.results import Result
from vocabshift.tokenizer.any_tokenizer import Ids

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
