"""Reports what an extension added, its effect, and its cost to the base tokenizer.

Owns the keys that `vocabshift extend --json` prints. Baselines are reported with their cost, which
can be computed for any extension. Everything is tested: tokens by the merges and through the whole
pipeline, and text by encoding and decoding it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.checks.text import SAMPLE_BYTES, sample
from vocabshift.extension.effect import Effect
from vocabshift.extension.options import RepairDrift
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.missing_bytes import LostCharacters
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer

_IN_FORMS_OF_THEIR_OWN = (
    *("effect", "drift", "other", "unused", "corpus_fingerprint", "cost", "lost_characters"),
    "deployable",
)


@dataclass(frozen=True)
class ExtensionReport:
    """The additions and their effect; counts are integers."""

    method: str
    n_added: int  # new tokens
    n_bytes_added: int  # of the new tokens, bytes that the vocabulary lacked
    n_repaired: int  # of the new merges, those that make a token of the base
    n_characters: int  # of the new tokens, characters that the vocabulary lacked
    n_merges: int  # new merges
    stopped_because: str  # "n_tokens", "min_frequency", "no_pair_left" or "no_token_left"
    vocab_size: int
    row_count: int  # the highest id plus one
    unreachable_before: int  # STT
    unreachable: int
    unreachable_added: int  # of the new tokens
    unused: tuple[str, ...]  # new tokens that the segmented text does not contain
    pre_tokenizer: str
    effect: Effect | None
    drift: RepairDrift | None = None  # of the repaired pre-tokenizer, before any token
    other: Mapping[str, Any] = field(default_factory=dict)
    """What the other pre-tokenizer (repaired for kept, kept for repaired) has for ceilings; for
    a repaired one also `bytes_per_token`, as it was. Empty where there is nothing to repair."""
    cost: Mapping[str, Any] = field(default_factory=dict)  # of a baseline, see `ExtensionCost`
    corpus_fingerprint: str = ""
    lost_characters: LostCharacters | None = None
    deployable: Mapping[str, Any] | None = None  # how a pattern of llama.cpp was chosen

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain = {
            key: getattr(self, key)
            for key in self.__dataclass_fields__
            if key not in _IN_FORMS_OF_THEIR_OWN
        }
        lost = self.lost_characters
        effect = {} if self.effect is None else self.effect.to_dict()
        drift = {} if self.drift is None else {"drift": self.drift.to_dict()}
        cost = {"cost": dict(self.cost)} if self.cost else {}
        return {
            **plain,
            "unused_added": len(self.unused),
            **effect,
            **drift,
            **cost,
            "other_pre_tokenizer": dict(self.other),
            **({} if lost is None else {"lost_characters": asdict(lost)}),
            **({} if self.deployable is None else {"deployable": dict(self.deployable)}),
        }


@dataclass(frozen=True)
class ExtensionCost:
    """Cost of an extension. Tokens are as the vocabulary spells them; lines are documents."""

    n_added: int  # new tokens, added tokens included
    n_merges: int  # new merges
    unreachable_added: tuple[str, ...]  # new tokens that the merges do not rebuild (STT)
    unreachable_base: tuple[str, ...]  # tokens that only the base's own merges rebuild
    lost_added: tuple[str, ...]  # new tokens that no text yields through the whole pipeline
    lost_base: tuple[str, ...]  # old tokens that some text yields only in the base
    lost_lines: Mapping[str, int]  # by language: lines that only the base decodes unchanged
    lines: Mapping[str, int]  # by language: lines that were tested

    @property
    def extra_merges(self) -> int:
        """Number of new merges beyond one for each new token."""
        return max(self.n_merges - self.n_added, 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: counts, and counts by language."""
        tokens = ("unreachable_added", "unreachable_base", "lost_added", "lost_base")
        return {
            "n_added": self.n_added,
            "n_merges": self.n_merges,
            "extra_merges": self.extra_merges,
            **{key: len(getattr(self, key)) for key in tokens},
            "lost_lines": dict(self.lost_lines),
            "lines": dict(self.lines),
        }


def extension_cost(
    base: Tokenizer,
    longer: Tokenizer,
    corpus: Corpus | None = None,
    *,
    threads: int = 1,
    sample_bytes: int = SAMPLE_BYTES,
) -> ExtensionCost:
    """Measure the cost of `longer`, an extension of `base`, on the first lines of each language."""
    before, after = Encoder(base), Encoder(longer)
    unreachable_added, unreachable_base = _newly(unreachable_tokens, base, longer)
    lost_added, lost_base = _newly(unreachable_by_pipeline, base, longer)
    texts = {} if corpus is None else sample(corpus, sample_bytes)
    lost_lines = {}
    for label, lines in texts.items():
        ours, theirs = (_returned(encoder, lines, threads) for encoder in (before, after))
        lost_lines[label] = sum(
            text == was != now for text, was, now in zip(lines, ours, theirs, strict=True)
        )
    return ExtensionCost(
        n_added=len(_names(longer) - _names(base)),
        n_merges=len(longer.model.merges) - len(base.model.merges),
        unreachable_added=unreachable_added,
        unreachable_base=unreachable_base,
        lost_added=lost_added,
        lost_base=lost_base,
        lost_lines=lost_lines,
        lines={label: len(lines) for label, lines in texts.items()},
    )


def _newly(
    find: Callable[[Tokenizer], tuple[str, ...]], base: Tokenizer, longer: Tokenizer
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what `find` finds only in `longer`: among its new tokens, and among the old ones."""
    known, found = _names(base), set(find(base))
    news = [token for token in find(longer) if token not in found]
    return (
        tuple(token for token in news if token not in known),
        tuple(token for token in news if token in known),
    )


def _names(tokenizer: Tokenizer) -> set[str]:
    return tokenizer.model.vocab.keys() | {token.content for token in tokenizer.added_tokens}


def _returned(encoder: Encoder, texts: list[str], threads: int) -> list[str]:
    """Encode and decode the texts."""
    return encoder.decode_batch(*encoder.encode_batch(texts, threads=threads))
