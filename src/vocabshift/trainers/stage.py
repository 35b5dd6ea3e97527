"""What one stage of training learned, as a value that can be kept on disk.

Owns the form of a stage (tokens by id, merges) and of its checkpoint. Knows nothing of how it was
learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core


@dataclass(frozen=True, eq=False)
class Stage:
    """Merges of one stage, and the vocabulary after it."""

    tokens: Sequence[bytes]  # by id: what the stage started from, then what it made
    merges: NDArray[np.uint32]  # (n_merges, 3): left id, right id, product id
    counts: NDArray[np.uint64]  # (n_merges,) weighted count of each pair when it was merged
    training_tokens: int  # of the training text as segmented by the end, unweighted
    stopped: str  # "vocab_size", "min_frequency", "no_pair_left" or "memory"
    bound: int = 1  # weighted: pairs that count less were not looked at, and need not be
    dropped_words: int = 0  # distinct words left out for want of memory
    dropped_occurrences: int = 0  # how often these stood in the text
    dropped_below: int = 0  # weighted: they were the words that count less than this

    @classmethod
    def of(cls, trained: _core.Trained, min_frequency: int) -> Stage:
        """The stage that the core trained, asked for pairs of at least `min_frequency`."""
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
        """Merges that were put together, without counts."""
        return cls(tokens, merges, np.zeros(0, np.uint64), training_tokens, stopped)

    @property
    def stopped_below(self) -> int:
        """Weighted: where memory ended the stage, pairs that count less are missing; else 0."""
        return self.bound if self.stopped == "memory" else 0

    def save(self, path: Path) -> dict[str, Any]:
        """Write the arrays to `path`; returns the rest, as plain JSON values."""
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
        }

    @classmethod
    def load(cls, path: Path, info: Mapping[str, Any], start: Sequence[bytes]) -> Stage:
        """The stage that `save` wrote; `start` are the tokens that it started from."""
        with path.open("rb") as file:
            merges = np.load(file, allow_pickle=False)
            counts = np.load(file, allow_pickle=False)
        tokens = list(start)
        for left, right, product in merges.tolist():
            if product == len(tokens):
                tokens.append(tokens[left] + tokens[right])
        return cls(tokens=tokens, merges=merges, counts=counts, **info)


def byte_tokens() -> list[bytes]:
    """The 256 bytes in the order of their ids: what training from nothing starts from."""
    from vocabshift.bpe import byte_level

    return [byte_level.to_bytes(image) for image in byte_level.ALPHABET]
