"""The word stage: counted pre-tokens, and the merges inside them.

Owns counting with its checkpoint, the grapheme-safe order (syllables first), and what a word
counts. Which options a trainer has is the trainer's business.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from vocabshift import _core
from vocabshift.bpe.compiled_model import compile_merges
from vocabshift.text.patterns import compile_pattern, get_pattern
from vocabshift.text.target_scripts import Range
from vocabshift.trainers.source import Reader
from vocabshift.trainers.stage import Stage, byte_tokens
from vocabshift.trainers.work import Work

SYLLABLE_SHARE = 0.3
"""Most of a grapheme-safe vocabulary that parts of single syllables may take."""


@dataclass(frozen=True)
class WordWeight:
    """What words of some scripts count beside others (Matra, section 3.3)."""

    scripts: Sequence[Range] = ()
    unit: int = 1  # a word of no target script counts this many times
    target: int = 1  # a word of one
    smoothing: float = 0.0  # above 0: counts of target words to this power, same total

    def to_core(self, of_group: list[int]) -> _core.WordWeights:
        """The core's form, with the weights of the groups."""
        return _core.WordWeights(
            of_group,
            unit=self.unit,
            target=self.target,
            scripts=list(self.scripts),
            smoothing=self.smoothing,
        )


@dataclass(frozen=True)
class WordRule:
    """What the word stage may learn."""

    vocab_size: int
    min_frequency: int = 1
    max_token_bytes: int = 0
    forbidden: set[bytes] = field(default_factory=set)
    conjoiners: str = ""  # not empty: grapheme-safe

    def to_core(self) -> _core.MergeRule:
        """The core's form."""
        return _core.MergeRule(
            max_token_bytes=self.max_token_bytes,
            forbidden=self.forbidden,
            conjoiners=self.conjoiners,
        )


def learn_words(reader: Reader, rule: WordRule, weight: WordWeight, work: Work) -> Stage:
    """Merges inside the words of the reader's pattern, up to `rule.vocab_size` tokens."""
    saved = work.checkpoints.load("stage 1")
    if saved is not None:
        reader.restore(saved.info["reader"])
        return Stage.load(saved.path, saved.info["stage"], byte_tokens())
    counter = count_words(reader, work)
    with work.watch.phase("stage 1"):
        stage = train_words(counter, reader, rule, weight, work)
    path = work.checkpoints.path("stage 1")
    if path is not None:
        info = stage.save(path)
        work.checkpoints.commit("stage 1", {"stage": info, "reader": reader.state()})
    work.checkpoints.drop("count")
    return stage


def train_words(
    counter: _core.WordCounter, reader: Reader, rule: WordRule, weight: WordWeight, work: Work
) -> Stage:
    """Merges inside counted words, weighed as the reader says. Training uses the counter up."""
    train = _Training(
        weights=weight.to_core(reader.fixed_point_weights(max(weight.unit, weight.target))),
        min_frequency=rule.min_frequency,
        min_count=reader.min_count(rule.min_frequency, weight.unit),
        rule=rule.to_core(),
        work=work,
    )
    if rule.conjoiners:
        return _syllables_first(counter, rule.vocab_size, train)
    return train(counter, rule.vocab_size)


def count_words(reader: Reader, work: Work) -> _core.WordCounter:
    """The words of the reader's pattern, from the checkpoint if there is one."""
    memory_bytes = work.share_of_memory(0.5)
    folder = work.folder or Path(tempfile.gettempdir())
    with work.watch.phase("count"):
        saved = work.checkpoints.load("count")
        if saved is not None:
            reader.restore(saved.info)
            return _core.WordCounter.load(str(saved.path), memory_bytes, str(folder))
        counter = reader.count_words(
            threads=work.threads,
            progress=work.in_phase("count"),
            memory_bytes=memory_bytes,
            spill_folder=folder,
        )
        work.checkpoints.save("count", lambda path: counter.save(str(path)), reader.state())
    return counter


@dataclass(frozen=True)
class _Training:
    """The core's training with what all of its calls share."""

    weights: _core.WordWeights
    min_frequency: int
    min_count: int  # the same, in fixed point
    rule: _core.MergeRule
    work: Work

    def __call__(
        self, counter: _core.WordCounter, vocab_size: int, start: Stage | None = None
    ) -> Stage:
        trained = _core.train_bpe(
            counter,
            self.weights,
            vocab_size,
            self.min_count,
            self.rule,
            None if start is None else compile_merges(list(start.tokens), start.merges),
            [] if start is None else list(start.tokens),
            memory_bytes=self.work.share_of_memory(0.7),
            threads=self.work.threads,
            progress=self.work.in_phase("stage 1"),
        )
        return Stage.of(trained, self.min_frequency)


def _syllables_first(counter: _core.WordCounter, vocab_size: int, train: _Training) -> Stage:
    """Merges within syllables get the lower ranks, so that syllables are whole before they join.

    Only a syllable too rare to have become one token can still be cut by a longer token.
    """
    pattern = compile_pattern(get_pattern("syllables"))
    assert pattern is not None
    size = 256 + round(SYLLABLE_SHARE * (vocab_size - 256))
    first = train(counter.split_words(pattern), size)
    second = train(counter, vocab_size, first)
    return replace(
        second,
        merges=np.concatenate([first.merges, second.merges]),
        counts=np.concatenate([first.counts, second.counts]),
        dropped_words=max(first.dropped_words, second.dropped_words),
        dropped_occurrences=max(first.dropped_occurrences, second.dropped_occurrences),
        dropped_below=max(first.dropped_below, second.dropped_below),
    )
