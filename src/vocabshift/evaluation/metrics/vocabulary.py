"""The composition of a vocabulary, and how much of it the texts use.

Owns the figures of a vocabulary: by script and class (`checks.vocabulary_report` classifies the
tokens), by language (a token belongs to every language whose text uses it), superwords,
tokens that span the end of a sentence, unused ones, and overlaps. All shares are of the tokens of
the model; added tokens outside it are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vocabshift.checks.vocabulary import terminal_spanning
from vocabshift.checks.vocabulary_report import CLASSES, SPECIAL, classes_of
from vocabshift.evaluation.lines.counts import Counts
from vocabshift.evaluation.lines.token_facts import TokenFacts
from vocabshift.evaluation.metrics.metric import Better, Metric, Need, OfPair, OfVocabulary
from vocabshift.results import WHOLE
from vocabshift.text.writing import SentencePolicy
from vocabshift.tokenizer.engine import Engine

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Vocabulary:
    """The tokens of a model, as figures."""

    def __init__(self, engine: Engine, facts: TokenFacts) -> None:
        vocab = engine.tokenizer.vocab
        self._engine = engine
        self._facts = facts
        self.is_in_model: Bools = np.zeros(engine.row_count, dtype=np.bool_)
        self.is_in_model[list(vocab.values())] = True
        self.size = len(vocab)
        self._scripts: tuple[list[str], Int64] | None = None

    def script_shares(self) -> dict[str, float]:
        """Share of the vocabulary by script or class; scripts by size, then the classes."""
        names, classes = self._classes()
        counts = np.bincount(classes[self.is_in_model] + 1, minlength=len(names) + 1)
        of_name = {name: int(count) for name, count in zip(names, counts[1:], strict=True)}
        of_name[SPECIAL] = of_name.get(SPECIAL, 0) + int(counts[0])  # no bytes in text: special
        scripts = sorted((n for n in of_name if n not in CLASSES), key=lambda n: (-of_name[n], n))
        return {n: of_name[n] / self.size for n in (*scripts, *CLASSES) if of_name.get(n)}

    def language_shares(self, counts: Mapping[str, Counts]) -> dict[str, tuple[float, float]]:
        """Shares of the vocabulary that the text of a language uses, and uses alone."""
        used = self._used(counts)
        users = np.sum(list(used.values()), axis=0, dtype=np.int64)
        return {
            language: (
                np.count_nonzero(of_language) / self.size,
                np.count_nonzero(of_language & (users == 1)) / self.size,
            )
            for language, of_language in used.items()
        }

    def unused_share(self, counts: Mapping[str, Counts]) -> float:
        """Share of the vocabulary that no text uses."""
        any_use = np.any(list(self._used(counts).values()), axis=0)
        return 1.0 - np.count_nonzero(any_use) / self.size

    def superword_share(self) -> float:
        """Share of tokens with text on both sides of a space."""
        return np.count_nonzero(self._facts.is_superword & self.is_in_model) / self.size

    def terminal_spanning_count(self) -> int:
        """Tokens that go on after the end of a sentence (`checks.vocabulary` says when)."""
        terminals = [*SentencePolicy().terminals, "."]
        # Most tokens hold no terminal at all, and the check itself is slow.
        may_span = re.compile(b"|".join(re.escape(mark.encode()) for mark in terminals)).search
        found = {
            str(token_id): data
            for token_id, data in self._engine.token_bytes.items()
            if self.is_in_model[token_id] and len(data) > 1 and may_span(data)
        }
        return len(terminal_spanning(found))

    @cached_property
    def hashes(self) -> Int64:
        """Sorted hashes of its tokens' bytes, without special ones."""
        return np.unique(self._facts.hashes[self._is_text])

    @cached_property
    def hashes_by_script(self) -> dict[str, Int64]:
        """The same of the tokens of each script."""
        names, classes = self._classes()
        return {
            name: np.unique(self._facts.hashes[self._is_text & (classes == number)])
            for number, name in enumerate(names)
            if name not in CLASSES and (self._is_text & (classes == number)).any()
        }

    @cached_property
    def _is_text(self) -> Bools:
        """Tokens of the model that stand for text."""
        found = np.zeros(len(self.is_in_model), dtype=np.bool_)
        found[list(self._engine.token_bytes)] = True
        return found & self.is_in_model

    def _classes(self) -> tuple[list[str], Int64]:
        if self._scripts is None:
            self._scripts = classes_of(self._engine.token_bytes, self._engine.row_count)
        return self._scripts

    def _used(self, counts: Mapping[str, Counts]) -> dict[str, Bools]:
        rows = self._engine.row_count
        return {
            language: (of_language.frequencies(rows) > 0) & self.is_in_model
            for language, of_language in counts.items()
        }


def overlap(ours: Int64, theirs: Int64) -> float:
    """Tokens of both vocabularies as a share of the smaller one; 0 where one is empty.

    For vocabularies of one size, as the Indic study compares them, the share of either.
    """
    smaller = min(len(ours), len(theirs))
    return len(np.intersect1d(ours, theirs, assume_unique=True)) / smaller if smaller else 0.0


@dataclass(frozen=True, eq=False)
class UsedVocabulary:
    """One subject's vocabulary, the texts that use it, and the vocabulary of the base."""

    vocabulary: Vocabulary
    counts: Mapping[str, Counts]  # by language
    base: Vocabulary | None = None

    @cached_property
    def language_shares(self) -> dict[str, tuple[float, float]]:
        """As `Vocabulary.language_shares`."""
        return self.vocabulary.language_shares(self.counts)


def _overlaps(used: UsedVocabulary) -> dict[str, float]:
    """With the base: of the whole vocabularies, then by script where both have the script."""
    if used.base is None:
        raise ValueError("vocabulary_overlap compares with a base tokenizer; give one as base")
    found = {WHOLE: overlap(used.vocabulary.hashes, used.base.hashes)}
    for script, hashes in sorted(used.vocabulary.hashes_by_script.items()):
        if script in used.base.hashes_by_script:
            found[script] = overlap(hashes, used.base.hashes_by_script[script])
    return found


def _shares(number: int) -> Callable[[UsedVocabulary], dict[str, float]]:
    """Of `language_shares`, the first or the second."""
    return lambda used: {language: pair[number] for language, pair in used.language_shares.items()}


def _metric(
    name: str,
    label: str,
    note: str,
    values: Callable[[UsedVocabulary], Mapping[str, float]],
    *needs: Need,
    better: Better = "neither",
    is_whole: bool = False,
    place: str = "language",
    decimals: int | None = None,
) -> Metric:
    return Metric(
        name,
        "vocabulary",
        label,
        note,
        better,
        OfVocabulary(values),
        frozenset(needs),
        is_whole=is_whole,
        place=place,
        decimals=decimals,
    )


METRICS = (
    _metric(
        "vocabulary_overlap",
        "overlap with the base",
        "share of the smaller vocabulary in both",
        _overlaps,
        "base",
        is_whole=True,
        place="script",
    ),
    Metric(
        "pairwise_overlap",
        "vocabulary",
        "overlap of vocabularies",
        "share of the smaller vocabulary in both",
        formula=OfPair(overlap),
        needs=frozenset({"subjects"}),
        place="with",
    ),
    _metric(
        "vocab_size",
        "vocabulary size",
        "tokens of the model",
        lambda used: {WHOLE: used.vocabulary.size},
        is_whole=True,
        decimals=0,
    ),
    _metric(
        "script_share",
        "script share",
        "share of the vocabulary, by script",
        lambda used: used.vocabulary.script_shares(),
        place="script",
    ),
    _metric(
        "language_share",
        "language share",
        "share of the vocabulary that a text uses",
        _shares(0),
        "text",
    ),
    _metric(
        "own_language_share",
        "own language share",
        "share of the vocabulary that only this language uses",
        _shares(1),
        "text",
    ),
    _metric(
        "superword_share",
        "superword share",
        "share of superwords in the vocabulary",
        lambda used: {WHOLE: used.vocabulary.superword_share()},
        is_whole=True,
    ),
    _metric(
        "terminal_spanning_count",
        "terminal-spanning tokens",
        "with text after the end of a sentence",
        lambda used: {WHOLE: used.vocabulary.terminal_spanning_count()},
        better="lower",
        is_whole=True,
        decimals=0,
    ),
    _metric(
        "unused_share",
        "unused share",
        "of the vocabulary, in no text",
        lambda used: {WHOLE: used.vocabulary.unused_share(used.counts)},
        "text",
        better="lower",
        is_whole=True,
    ),
)
