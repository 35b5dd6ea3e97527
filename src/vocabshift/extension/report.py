"""ExtensionReport: what an extension added and what it does, as a value and as plain JSON.

Owns the keys that `vocabshift extend --json` prints. Knows nothing of how they came about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vocabshift.extension.effect import Effect
from vocabshift.extension.options import Method, PreTokenizer
from vocabshift.extension.pre_tokenizer_repair import RepairDrift


@dataclass(frozen=True)
class ExtensionReport:
    """What was added and what it does; counts are integers."""

    method: Method
    n_added: int  # new tokens
    n_repaired: int  # of the new merges, those that make a token of the base
    n_characters: int  # of the new tokens, characters that the vocabulary lacked
    n_merges: int  # new merges
    stopped_because: str  # "n_tokens", "min_frequency", "no_pair_left" or "no_token_left"
    vocab_size: int
    row_count: int  # the highest id plus one
    unreachable_before: int  # STT
    unreachable: int
    unreachable_added: int  # of the new tokens
    unused: tuple[str, ...]  # new tokens that the text does not contain in the end
    pre_tokenizer: PreTokenizer
    effect: Effect | None
    drift: RepairDrift | None = None  # of the repaired pre-tokenizer, before any token
    other: Effect | None = None
    """Of the other pre-tokenizer without any new token: kept where this one is repaired, repaired
    where this one is kept; None where there is nothing to repair."""
    cost: Mapping[str, Any] = field(default_factory=dict)  # of a baseline, see `ExtensionCost`
    corpus_fingerprint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain = {
            key: getattr(self, key)
            for key in self.__dataclass_fields__
            if key not in ("effect", "drift", "other", "unused", "corpus_fingerprint", "cost")
        }
        effect = {} if self.effect is None else self.effect.to_dict()
        drift = {} if self.drift is None else {"drift": self.drift.to_dict()}
        cost = {"cost": dict(self.cost)} if self.cost else {}
        return {
            **plain,
            "unused_added": len(self.unused),
            **effect,
            **drift,
            **cost,
            "other_pre_tokenizer": self._other(),
        }

    def _other(self) -> dict[str, Any]:
        if self.other is None:
            return {}
        rows = self.other.languages
        return {
            "pre_tokenizer": "kept" if self.pre_tokenizer == "repaired" else "repaired",
            "ceilings": {row.language: row.ceiling_bytes_per_token for row in rows},
            "bytes_per_token": {row.language: row.bytes_per_token for row in rows},
        }
