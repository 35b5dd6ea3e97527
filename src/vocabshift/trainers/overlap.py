"""OBPE: byte-pair encoding that prefers pairs shared by related languages.

Languages are divided into high-resource and low-resource ones. The score of a pair that occurs f_L
times in language L is

    alpha * sum over L of f_L + (1 - alpha) * sum over low k of max over high h of mean_p(f_h, f_k)

So a merge that serves a low-resource language and one of its larger relatives scores higher than
one of the same count in a single language. mean_p is the generalized mean of a power p < 0. It is 0
if one of the two languages lacks the pair. The paper defines p -> -infinity, which is the minimum;
the authors' code uses -2. The core's pair_score.h states the score to the last bit. Of equal
scores the smaller (left_id, right_id) wins; the authors' code leaves the order to a Python set.
With alpha 1 the merges are those of recipe bpe.

Words are cut by a pattern and made of bytes, as in every recipe here, and the export is an ordinary
merge list. Counts are those of the weighted corpus. The size of a language does not change the
score, so the high-resource set decides which languages may lead, not by how much.

Source: Patil, Talukdar, Sarawagi, "Overlap-based Vocabulary Generation Improves Cross-lingual
Transfer Among Related Languages", ACL 2022.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.trainers.base import (
    Reader,
    RunContext,
    Source,
    Training,
    TrainingReport,
    detailed,
    labelled,
)
from vocabshift.trainers.byte_level import ByteLevelTrainer
from vocabshift.trainers.picky import (
    Groups,
    learn_scored_words,
    why_stopped,
)
from vocabshift.trainers.stages import Stage


@dataclass(frozen=True, slots=True)
class OverlapReport(TrainingReport):
    """What a run did; all merges count as stage 1."""

    high_resource: tuple[str, ...]  # sorted
    low_resource: tuple[str, ...]


def facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts shown to users: which languages were to share tokens."""
    return {
        "high-resource languages": ", ".join(result["high_resource"]),
        "low-resource languages": ", ".join(result["low_resource"]),
    }


@dataclass(frozen=True, kw_only=True)
class OverlapTrainer(ByteLevelTrainer):
    """Byte-pair encoding inside the words of a pattern, by counts and by overlap."""

    high_resource: Annotated[tuple[str, ...], "LANG"] = ()
    """Labels of the languages of high resources; all others are low. Empty: the larger half of the
    languages by bytes of text, the middle one included."""
    overlap_alpha: Annotated[float, "share"] = 0.5
    """Weight of the plain count, in (0, 1]; the overlap has the rest."""
    overlap_power: Annotated[float | Literal["min"], "mean power"] = -2.0
    """Power of the mean, below 0; "min" is the limit, the smaller of the two counts."""

    recipe: ClassVar[str] = "overlap"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "high_resource", tuple(self.high_resource))
        if not 0 < self.overlap_alpha <= 1:
            raise ValueError(
                f"overlap_alpha is {self.overlap_alpha!r}; give a share above 0 and up to 1: 0.5 "
                "is the paper's, 1 is plain BPE"
            )
        if self.overlap_power != "min" and not (
            isinstance(self.overlap_power, int | float) and -math.inf < self.overlap_power < 0
        ):
            raise ValueError(
                f"overlap_power is {self.overlap_power!r}; give a number below 0, such as -2, or "
                '"min" for the smaller of two counts'
            )
        self._refuse_grapheme_safe("by its score alone")

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report. Raises CorpusError if a
        language has no label, and ValueError for a memory budget."""
        context = context or RunContext()
        reader = self._language_reader(corpus)
        trained, high = self.learn(reader, context)
        events = trained.events
        stage = Stage.of_merges(
            trained.tokens,
            np.ascontiguousarray(events),
            why_stopped(trained, self.min_frequency),
            trained.replayed_tokens,
        )
        training = self._finish([stage], reader, context)
        report = detailed(
            training.report,
            OverlapReport,
            high_resource=tuple(sorted(high)),
            low_resource=tuple(sorted(map(str, reader.language_bytes.keys() - high))),
        )
        return replace(training, report=report)

    def learn(self, reader: Reader, context: RunContext) -> tuple[_core.PickyTrained, set[str]]:
        """Return the merges and the high-resource languages."""
        high: set[str] = set()

        def groups_and_score() -> tuple[Groups, _core.PairScore]:
            languages = labelled(reader.language_bytes, self.recipe)
            high.update(high_resource(languages, self.high_resource))
            numbers = {language: number for number, language in enumerate(sorted(languages))}
            groups = [
                (weight, numbers[str(group.language)])
                for group, weight in zip(reader.groups, reader.fixed_point_weights(), strict=True)
            ]
            is_high = [language in high for language in numbers]
            power = -math.inf if self.overlap_power == "min" else self.overlap_power
            return groups, _core.PairScore(is_high, self.overlap_alpha, power)

        trained = learn_scored_words(
            reader,
            self._word_rule(reader, self.vocab_size),
            context,
            recipe=self.recipe,
            groups_and_score=groups_and_score,
        )
        return trained, high

    def _language_reader(self, corpus: Source) -> Reader:
        """Return a reader with a group for each language; CorpusError if labels are missing."""
        if isinstance(corpus, Corpus):
            labels = [part.language for part in corpus.parts]
            high_resource(labelled(dict.fromkeys(labels, 0), self.recipe), self.high_resource)
        reader = self._reader(corpus, self._pattern(corpus))
        return replace(reader, by_language=True) if isinstance(reader, CorpusReader) else reader


def high_resource(languages: Mapping[str, int], wanted: tuple[str, ...]) -> set[str]:
    """Return the high-resource languages: as requested, or the larger half by bytes.

    Ties are broken by label. Raises CorpusError for a language that is not in the corpus, or if no
    low-resource language would remain.
    """
    unknown = [label for label in wanted if label not in languages]
    if unknown:
        raise CorpusError(
            f"high_resource names {', '.join(map(repr, unknown))}, and the corpus has "
            f"{', '.join(sorted(languages))}"
        )
    if set(wanted) == set(languages):
        raise CorpusError(
            "high_resource names all languages of the corpus; leave out those of low resources"
        )
    if wanted:
        return set(wanted)
    by_size = sorted(languages, key=lambda label: (-languages[label], label))
    return set(by_size[: (len(by_size) + 1) // 2])
