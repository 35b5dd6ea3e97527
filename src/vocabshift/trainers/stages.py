"""Stages of training: the result of a stage, as a value that can be saved; and the word stage.

Owns the form of a stage (tokens by id, merges) and of its checkpoint, the rules of both stages,
counting with its checkpoint, the grapheme-safe order (syllables first), and the weights of words.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.text.languages import Range
from vocabshift.text.patterns import get_pattern
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.weighing import SentenceWeight
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import Reader, RunContext


@dataclass(frozen=True, eq=False)
class Stage:
    """Merges of one stage, and the vocabulary after it."""

    tokens: Sequence[bytes]  # by id: what the stage started from, then what it made
    merges: NDArray[np.uint32]  # (n_merges, 3): left id, right id, product id
    counts: NDArray[np.uint64]  # (n_merges,) weighted count of each pair when it was merged
    training_tokens: int  # of the training text in its final segmentation, unweighted
    stopped: str  # "vocab_size", "min_frequency", "no_pair_left" or "memory"
    bound: int = 1  # weighted: pairs that count less were not examined, and need not be
    dropped_words: int = 0  # distinct words left out for lack of memory
    dropped_occurrences: int = 0  # how often these occurred in the text
    dropped_below: int = 0  # weighted: all words that count less than this were dropped
    facts: Mapping[str, Any] = field(default_factory=dict)  # for a recipe's report; plain JSON

    @classmethod
    def of(cls, trained: _core.Trained, min_frequency: int) -> Stage:
        """Return the stage that the core trained with pairs of at least `min_frequency`."""
        stopped = trained.stopped.name.lower()
        if stopped == "min_frequency" and min_frequency == 1:
            stopped = "no_pair_left"  # in fixed point even one occurrence counts more than 1
        return cls(
            tokens=trained.tokens,
            merges=trained.merges,
            counts=trained.counts,
            training_tokens=trained.training_tokens,
            stopped=stopped,
            bound=trained.bound,
            dropped_words=trained.dropped_words,
            dropped_occurrences=trained.dropped_occurrences,
            dropped_below=trained.dropped_below,
        )

    @classmethod
    def of_merges(
        cls,
        tokens: Sequence[bytes],
        merges: NDArray[np.uint32],
        stopped: str,
        training_tokens: int = 0,
    ) -> Stage:
        """Return a stage of combined merges, without counts."""
        return cls(tokens, merges, np.zeros(0, np.uint64), training_tokens, stopped)

    @property
    def stopped_below(self) -> int:
        """Weighted: if memory ended the stage, pairs that count less are missing; else 0."""
        return self.bound if self.stopped == "memory" else 0

    def save(self, path: Path) -> dict[str, Any]:
        """Write the arrays to `path`; return the rest as plain JSON values."""
        with path.open("wb") as file:
            np.save(file, self.merges, allow_pickle=False)
            np.save(file, self.counts, allow_pickle=False)
        return {
            "training_tokens": self.training_tokens,
            "stopped": self.stopped,
            "bound": self.bound,
            "dropped_words": self.dropped_words,
            "dropped_occurrences": self.dropped_occurrences,
            "dropped_below": self.dropped_below,
            "facts": dict(self.facts),
        }

    @classmethod
    def load(cls, path: Path, info: Mapping[str, Any], start: Sequence[bytes]) -> Stage:
        """Load the stage that `save` wrote; `start` are the tokens from which it started."""
        with path.open("rb") as file:
            merges = np.load(file, allow_pickle=False)
            counts = np.load(file, allow_pickle=False)
        tokens = list(start)
        for left, right, product in merges.tolist():
            if product == len(tokens):
                tokens.append(tokens[left] + tokens[right])
        return cls(tokens=tokens, merges=merges, counts=counts, **info)


def byte_tokens() -> list[bytes]:
    """Return the 256 bytes in the order of their ids: the start of training from scratch."""
    return [byte_level.to_bytes(image) for image in byte_level.ALPHABET]


# The word stage: counting with its checkpoint, and the merges inside words.

SYLLABLE_SHARE = 0.3
"""Most of a grapheme-safe vocabulary that parts of single syllables may take."""


@dataclass(frozen=True)
class WordWeight:
    """Weights of words, by script (Matra, section 3.3)."""

    scripts: Sequence[Range] = ()
    unit: int = 1  # a word of no target script counts this many times
    target: int = 1  # a word of one
    smoothing: float = 0.0  # above 0: counts of target words to this power, same total

    def to_core(self, of_group: list[int]) -> _core.WordWeights:
        """Return the core's form, with the weights of the groups."""
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


@dataclass(frozen=True)
class SuperwordRule:
    """What the superword stage may learn."""

    vocab_size: int
    min_frequency: int = 1
    max_token_bytes: int = 0
    max_words: int = 0
    forbidden: set[bytes] = field(default_factory=set)
    conjoiners: str = ""
    terminals: str = ""  # characters that no product may hold
    whole_first: bool = False  # no product holds the end of a character and the bytes after it
    sentences: SentenceWeight | None = None  # None: documents weigh by their group alone
    unit: int = 1  # weight of a sentence without target words

    def to_core(self) -> _core.MergeRule:
        """The core's form."""
        return _core.MergeRule(
            max_token_bytes=self.max_token_bytes,
            max_words=self.max_words,
            forbidden=self.forbidden,
            terminals=self.terminals,
            whole_characters=self.sentences is not None,
            whole_first=self.whole_first,
            conjoiners=self.conjoiners,
        )


TrainWords = Callable[[_core.WordCounter, Reader, WordRule, WordWeight, RunContext], Stage]
"""Learns merges inside counted words, and may empty the counter."""


def learn_words(
    reader: Reader,
    rule: WordRule,
    weight: WordWeight,
    context: RunContext,
    train: TrainWords | None = None,
) -> Stage:
    """Learn merges inside the words of the reader's pattern, up to `rule.vocab_size` tokens.

    `train` learns them (default: `train_words`); what it returns is saved for a killed run.
    """
    saved = context.checkpoints.load("stage 1")
    if saved is not None:
        reader.restore(saved.info["reader"])
        return Stage.load(saved.path, saved.info["stage"], byte_tokens())
    counter = count_words(reader, context)
    with context.watch.phase("stage 1"):
        stage = (train or train_words)(counter, reader, rule, weight, context)
    path = context.checkpoints.path("stage 1")
    if path is not None:
        info = stage.save(path)
        context.checkpoints.commit("stage 1", {"stage": info, "reader": reader.state()})
    context.checkpoints.drop("count")
    return stage


def train_words(
    counter: _core.WordCounter,
    reader: Reader,
    rule: WordRule,
    weight: WordWeight,
    context: RunContext,
) -> Stage:
    """Learn merges inside counted words, with the reader's weights. This empties the counter."""
    train = _Training(
        weights=weight.to_core(reader.fixed_point_weights(max(weight.unit, weight.target))),
        min_frequency=rule.min_frequency,
        min_count=reader.min_count(rule.min_frequency, weight.unit),
        rule=rule.to_core(),
        context=context,
    )
    if rule.conjoiners:
        return _syllables_first(counter, rule.vocab_size, train)
    return train(counter, rule.vocab_size)


def count_words(reader: Reader, context: RunContext) -> _core.WordCounter:
    """Count the words of the reader's pattern, or read them from the checkpoint if it exists."""
    memory_bytes = context.share_of_memory(0.5)
    folder = context.folder or Path(tempfile.gettempdir())
    with context.watch.phase("count"):
        saved = context.checkpoints.load("count")
        if saved is not None:
            reader.restore(saved.info)
            return _core.WordCounter.load(str(saved.path), memory_bytes, str(folder))
        counter = reader.count_words(
            threads=context.threads,
            progress=context.in_phase("count"),
            memory_bytes=memory_bytes,
            spill_folder=folder,
        )
        context.checkpoints.save("count", lambda path: counter.save(str(path)), reader.state())
    return counter


@dataclass(frozen=True)
class _Training:
    """The core's training with what all of its calls share."""

    weights: _core.WordWeights
    min_frequency: int
    min_count: int  # the same, in fixed point
    rule: _core.MergeRule
    context: RunContext

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
            memory_bytes=self.context.share_of_memory(0.7),
            threads=self.context.threads,
            progress=self.context.in_phase("stage 1"),
        )
        return Stage.of(trained, self.min_frequency)


def _syllables_first(counter: _core.WordCounter, vocab_size: int, train: _Training) -> Stage:
    """Give merges inside syllables the lower ranks, so that syllables are whole before they join.

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
