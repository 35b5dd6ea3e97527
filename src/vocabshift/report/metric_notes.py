"""What a metric means to a reader: a label, a sentence, and which direction is better, as data.

Knows nothing of how metrics are computed. A metric that is not listed is shown by its own name and
judged in no direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vocabshift.results import Results

ALL_LANGUAGES = "all"
"""The language of figures that belong to a tokenizer as a whole."""

LOSS = "loss_rate"
"""Where it is above zero, a tokenizer drops text, and the figures of COMPRESSION mean nothing."""

DAGGER = "†"
DAGGER_NOTE = (
    f"{DAGGER} The tokenizer loses text in this language, so that its compression figures there "
    "are no compression and cannot be compared."
)


@dataclass(frozen=True, slots=True)
class MetricNote:
    """For one metric."""

    label: str
    meaning: str
    better: int = 0  # 1: higher; -1: lower; 0: neither


_LOWER, _HIGHER = -1, 1

NOTES: Mapping[str, MetricNote] = {
    "fertility": MetricNote("fertility", "tokens per word", _LOWER),
    "bytes_per_token": MetricNote("bytes per token", "bytes of UTF-8 per token", _HIGHER),
    "characters_per_token": MetricNote("characters per token", "code points per token", _HIGHER),
    "normalized_sequence_length": MetricNote(
        "normalized sequence length", "tokens, as a share of the base tokenizer's", _LOWER
    ),
    "tokens_per_character": MetricNote("tokens per character", "tokens per code point", _LOWER),
    "sequence_reduction": MetricNote("sequence reduction", "1 - tokens / bytes", _HIGHER),
    "single_character_rate": MetricNote(
        "single-character rate", "share of tokens that are one code point", _LOWER
    ),
    "word_fragmentation_rate": MetricNote(
        "word fragmentation", "share of words in more than one token", _LOWER
    ),
    "renyi_entropy": MetricNote("Rényi entropy", "of the distribution of tokens, in bits"),
    "renyi_efficiency": MetricNote(
        "Rényi efficiency", "entropy of order 2.5 as a share of its maximum", _HIGHER
    ),
    "gini": MetricNote("Gini", "inequality of token totals over languages", _LOWER),
    "normalized_variance": MetricNote(
        "normalized variance", "variance of token totals over languages", _LOWER
    ),
    "morph_score": MetricNote("MorphScore", "token borders that are morpheme borders", _HIGHER),
    LOSS: MetricNote("loss rate", "share of lines that do not come back from their ids", _LOWER),
    "bits_per_byte": MetricNote("bits per byte", "of a language model's prediction", _LOWER),
}

COMPRESSION = frozenset(
    {
        *("fertility", "bytes_per_token", "characters_per_token", "tokens_per_character"),
        *("normalized_sequence_length", "sequence_reduction", "single_character_rate"),
        *("word_fragmentation_rate", "renyi_entropy", "renyi_efficiency"),
    }
)
"""Metrics that mean nothing where text was lost."""


def note_of(metric: str) -> MetricNote:
    """The note of a metric; its name with spaces where there is none."""
    return NOTES.get(metric) or MetricNote(metric.replace("_", " "), "")


def lossy(results: Results) -> frozenset[tuple[str, str]]:
    """(subject, language) pairs whose compression figures are invalid."""
    rows = results.where(metric=LOSS)
    return frozenset((row.subject, row.language) for row in rows if row.value > 0)
