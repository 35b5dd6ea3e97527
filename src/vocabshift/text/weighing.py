"""Weights of text: groups of documents with equal weight, and how much an occurrence counts.

Owns temperature sampling over languages and how weights become fixed-point numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import mul
from typing import Any

from vocabshift import _core
from vocabshift.text.languages import Range

WEIGHT_UNIT = 4096
"""One occurrence of weight 1, in the fixed-point unit of weighted counts."""

_MOST = 1 << 62
"""No weighted count of a text may reach this: the core counts in 64 bits, and what is normalized
may be longer than what was read."""


@dataclass(frozen=True)
class SentenceWeight:
    """What a sentence counts, by its share of words in target scripts (Matra, section 3.3)."""

    scripts: tuple[Range, ...]
    terminals: str  # the characters that end a sentence
    unit: int  # fixed point: without target words
    target: int  # where every word is one

    def to_core(self) -> _core.SentenceWeights:
        """The core's form."""
        return _core.SentenceWeights(
            scripts=list(self.scripts),
            terminals=self.terminals,
            unit=self.unit,
            target=self.target,
        )


@dataclass(slots=True)
class Group:
    """Documents with equal weight."""

    language: str | None  # None too where languages are not distinguished
    weight: float
    n_bytes: int = 0
    n_documents: int = 0
    n_special: int = 0  # special tokens found in them


def fingerprint_seed(language: str | None, weight: float) -> int:
    """What tells equal documents of two groups apart in a fingerprint; for `_core.fingerprint`."""
    return _core.fingerprint(f"{language}@{weight!r}".encode())


def format_fingerprint(total: int) -> str:
    """A fingerprint, which is a sum over documents, modulo 2**64."""
    return f"{total % (1 << 64):016x}"


class WeightedText:
    """Text in groups, with the statistics of reading it and its weights."""

    sampling_alpha: float | None
    language_weights: Mapping[str | None, float] | None = None
    """A further factor for each language; None, or a language that is not here: 1."""
    groups: list[Group]  # in order of appearance
    language_bytes: dict[str | None, int]  # of the documents, by label
    n_special: int  # special tokens that stood in the text
    fingerprint: str  # of the text, labels and weights

    def state(self) -> dict[str, Any]:
        """The statistics of reading, as plain JSON values."""
        return {
            "groups": [asdict(group) for group in self.groups],
            "language_bytes": list(self.language_bytes.items()),
            "n_special": self.n_special,
            "fingerprint": self.fingerprint,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the statistics of another reader of the same text."""
        self.groups = [Group(**group) for group in state["groups"]]
        self.language_bytes = dict(state["language_bytes"])
        self.n_special = state["n_special"]
        self.fingerprint = state["fingerprint"]

    @property
    def n_bytes(self) -> int:
        """Bytes of all documents, as read last."""
        return sum(group.n_bytes for group in self.groups)

    @property
    def n_documents(self) -> int:
        """Documents, as read last."""
        return sum(group.n_documents for group in self.groups)

    @property
    def weights(self) -> list[float]:
        """What an occurrence counts, by group: weight of its documents times sampling."""
        sampled = sampled_weights(self.groups, self.sampling_alpha)
        factors = self.language_weights or {}
        return [
            weight * factors.get(group.language, 1.0)
            for group, weight in zip(self.groups, sampled, strict=True)
        ]

    def fixed_point_weights(self, unit: int = 1) -> list[int]:
        """Weight of each group in the core's unit: 1 where all are alike, else WEIGHT_UNIT times.

        Rescaled: the smallest is at least 1 (docs/algorithms/bpe.md). ValueError where counts
        of these weights, each times `unit` at the most, could outgrow 64 bits.
        """
        weights, scale = self.weights, self._scale()
        is_weighted = len(set(weights)) > 1
        exact = [weight * scale if is_weighted else 1.0 for weight in weights]
        sizes = (max(group.n_bytes, 1) for group in self.groups)
        # In floating point: a weight may be beyond all integers of 64 bits.
        if not sum(map(mul, exact, sizes)) * unit < _MOST:
            times = f"between {min(weights):.3g} and {max(weights):.3g} times"
            raise ValueError(
                f"documents count {times}, which leaves no room to count in 64 bits; make the "
                "weights less different"
                if is_weighted
                else f"the words have {self.n_bytes:,} bytes, each as often as it "
                "occurs: too many to count in 64 bits; count less text"
            )
        return list(map(round, exact))

    def min_count(self, min_frequency: int, unit: int = 1) -> int:
        """`min_frequency` in the unit of `fixed_point_weights`, times `unit`."""
        return min(max(1, round(min_frequency * self._scale())) * unit, _MOST)

    def _scale(self) -> float:
        """The count of one occurrence of weight 1."""
        weights = self.weights
        if len(set(weights)) <= 1:
            return 1
        return max(WEIGHT_UNIT, 1 / min(weights))


def check_sampling_alpha(alpha: float | None, languages: Sequence[str]) -> None:
    """ValueError for a temperature outside (0, 1], or languages that have no label."""
    if alpha is None:
        return
    if not 0 < alpha <= 1:
        raise ValueError(
            f"sampling_alpha is {alpha!r}; give a number above 0 and up to 1: 1 leaves languages "
            "as large as they are, 0.3 makes them nearly equal"
        )
    if not languages:
        raise ValueError(
            "sampling_alpha needs languages, and the corpus has no labels; label it as lang=PATH"
        )


def sampled_weights(groups: Sequence[Group], alpha: float | None) -> list[float]:
    """Weights by group with temperature sampling (XLM-R, section 3.1), the total unchanged.

    Nothing is copied: a language of share p counts p ** alpha / sum(q ** alpha) / p times.
    """
    if alpha is None:
        return [group.weight for group in groups]
    totals: dict[str | None, float] = {}
    for group in groups:
        totals[group.language] = totals.get(group.language, 0.0) + group.weight * group.n_bytes
    whole = sum(totals.values())
    powers = {language: (total / whole) ** alpha for language, total in totals.items() if total > 0}
    norm = sum(powers.values())
    factors = {
        language: power / norm / (totals[language] / whole) for language, power in powers.items()
    }
    return [group.weight * factors.get(group.language, 1.0) for group in groups]
