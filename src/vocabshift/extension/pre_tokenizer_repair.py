"""Repairs a pre-tokenizer so that marks and joiners stay in words, and measures the change.

No extension can exceed bytes per pre-token, and patterns whose words are only letters cut every
Indian word at its vowel signs. `text.regexes` rewrites the regex.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vocabshift.checks.drift import SAMPLE_BYTES, Drift, drift, sample, token_lengths
from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.pre_tokenizer_repair import puts_space_and_cuts, repair_words
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class RepairDrift:
    """Changes by the repair before any token is added; token ids are the same on both sides."""

    languages: Mapping[str, Drift]  # by label of the corpus, on a sample of each language
    lost: tuple[str, ...]  # tokens that no text yields after the repair
    gained: tuple[str, ...]  # tokens that no text yielded before

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; shares are in [0, 1]."""
        shares = {label: drift.shares for label, drift in self.languages.items()}
        return {
            "changed_lines": {label: lines for label, (lines, _) in shares.items()},
            "changed_tokens": {label: tokens for label, (_, tokens) in shares.items()},
            "tokens_lost": len(self.lost),
            "tokens_gained": len(self.gained),
        }


def repaired(tokenizer: Tokenizer) -> Tokenizer:
    """Return the same tokenizer with marks and joiners allowed after the letters of a word.

    Everything else stays, vocabulary and merges included. Text in which no letter is followed by a
    mark, ZWNJ or ZWJ keeps its ids. A ByteLevel with GPT-2's regex inside becomes a Split with the
    repaired regex and a ByteLevel without one. Raises ValueError if there is nothing to repair.
    """
    changed = repair_words(tokenizer)
    if changed is not None:
        return changed
    spec = tokenizer.pre_tokenizer
    if spec is None or not is_byte_level(tokenizer):
        reason = (
            "is not byte-level: no regex cuts its words at marks, and nothing is to be repaired"
        )
    elif puts_space_and_cuts(spec):
        reason = (
            "puts a space before every text while it cuts words (ByteLevel with add_prefix_space "
            "and use_regex), which no list of steps with a repaired regex can do"
        )
    else:
        reason = (
            "cuts no word at a mark or joiner, or not by a regex with \\p{L}+ for words: there is "
            "nothing to repair"
        )
    raise ValueError(f"{tokenizer.name} {reason}; extend it with its own pre-tokenizer (kept)")


def repaired_if_possible(tokenizer: Tokenizer) -> Tokenizer | None:
    """Return the tokenizer with the repaired pre-tokenizer, or None if nothing can be repaired."""
    try:
        return repaired(tokenizer)
    except ValueError:  # there is nothing to repair
        return None


def repair_drift(
    base: Tokenizer,
    changed: Tokenizer,
    corpus: Corpus,
    *,
    threads: int = 1,
    sample_bytes: int = SAMPLE_BYTES,
) -> RepairDrift:
    """Compare a tokenizer with its repair on the first `sample_bytes` bytes of each language."""
    before, after = Encoder(base), Encoder(changed)
    lengths = token_lengths(base)
    languages = {
        label: drift(
            before.encode_batch(texts, threads=threads),
            after.encode_batch(texts, threads=threads),
            lengths,
        )
        for label, texts in sample(corpus, sample_bytes).items()
    }
    dead, dead_after = (unreachable_by_pipeline(e.tokenizer) for e in (before, after))
    was_dead, is_dead = set(dead), set(dead_after)
    return RepairDrift(
        languages,
        tuple(token for token in dead_after if token not in was_dead),
        tuple(token for token in dead if token not in is_dead),
    )
