"""Every metric by name, and the ratios: pure functions of the counts of lines.

Owns the registry that `--metrics` knows, and the definitions (docs/algorithms/metrics.md) that
are a ratio of two sums over lines (IST's micro-average). Other families define theirs in files of
their own (`distribution`, `fairness`, `drift`, `vocabulary`, those of `linguistic`) and are listed
here. To add a metric
is to add a line here and its definition. Knows nothing of tokenizers or files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vocabshift.evaluation.counts import LineCounts
from vocabshift.evaluation.linguistic.families import FAMILIES
from vocabshift.evaluation.spans.words import BINS
from vocabshift.evaluation.statistics.bootstrap import Column, Estimate, Terms, estimate

__all__ = ["METRICS", "Estimate", "Metric", "Terms", "check_names", "estimate", "terms"]

Family = (
    Literal["ratio", "frequency bin", "base", "distribution", "fairness", "premium", "vocabulary"]
    | Literal["drift", "alignment", "numbers", "robustness", "code switching", "morphemes"]
)
Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is known of a metric without computing it."""

    family: Family
    better: Better
    summary: str
    needs_base: bool = False
    needs_parallel: bool = False


Definition = Callable[[LineCounts], Terms]


def _ones(counts: LineCounts) -> Column:
    return np.ones(counts.n_lines, dtype=np.int64)


_RATIOS: dict[str, Definition] = {
    "fertility": lambda c: (c.n_tokens, c.n_words),
    "bytes_per_token": lambda c: (c.n_bytes, c.n_tokens),
    "characters_per_token": lambda c: (c.n_characters, c.n_tokens),
    "tokens_per_character": lambda c: (c.n_tokens, c.n_characters),  # Matra's NSL
    "sequence_reduction": lambda c: (c.n_bytes - c.n_tokens, c.n_bytes),
    "single_character_rate": lambda c: (c.n_single_character_tokens, c.n_tokens),
    "word_fragmentation_rate": lambda c: (c.n_fragmented_words, c.n_words),
    "superword_rate": lambda c: (c.n_superword_tokens, c.n_tokens),
    "unk_rate": lambda c: (c.n_unknown_tokens, c.n_tokens),
    "tokens_per_line": lambda c: (c.n_tokens, _ones(c)),  # times n it is all tokens: Matra, Table 2
    "loss_rate": lambda c: (c.is_lost, _ones(c)),
    "character_loss_rate": lambda c: (c.n_lost_characters, c.n_characters),
}

BASE_METRIC = "normalized_sequence_length"
"""The ratio that compares with a base tokenizer."""

LOSS = "loss_rate"
"""Above zero, the figures of compression of this subject and language are not valid."""

BIN_METRICS = {f"fertility_bin_{name}": number for number, name in enumerate(BINS)}
"""Index into BINS by metric."""

METRICS: dict[str, Metric] = {
    "fertility": Metric("ratio", "lower", "tokens per word"),
    "bytes_per_token": Metric("ratio", "higher", "bytes per token"),
    "characters_per_token": Metric("ratio", "higher", "characters per token"),
    "tokens_per_character": Metric("ratio", "lower", "tokens per character"),
    "sequence_reduction": Metric("ratio", "higher", "1 - tokens / bytes"),
    BASE_METRIC: Metric("base", "lower", "tokens / tokens of the base", needs_base=True),
    "single_character_rate": Metric(
        "ratio", "lower", "share of tokens that are a single character"
    ),
    "word_fragmentation_rate": Metric("ratio", "lower", "share of words in more than one token"),
    "superword_rate": Metric("ratio", "neither", "share of tokens that hold text around a space"),
    "unk_rate": Metric("ratio", "lower", "share of tokens that stand for unknown text"),
    "tokens_per_line": Metric("ratio", "lower", "tokens per line"),
    LOSS: Metric("ratio", "lower", "share of lines that their tokens do not give back"),
    "character_loss_rate": Metric("ratio", "lower", "share of characters that do not come back"),
    **{
        name: Metric("frequency bin", "lower", f"tokens per word, words of rank {BINS[number]}")
        for name, number in BIN_METRICS.items()
    },
    "renyi_entropy": Metric("distribution", "neither", "Renyi entropy of the tokens, in bits"),
    "renyi_efficiency": Metric(
        "distribution", "higher", "Renyi entropy / log2 of the vocabulary size"
    ),
    "gini": Metric(
        "fairness", "lower", "Gini coefficient of tokens over languages", needs_parallel=True
    ),
    "normalized_variance": Metric(
        "fairness", "lower", "variance of tokens over languages / mean squared", needs_parallel=True
    ),
    "coefficient_of_variation": Metric(
        "fairness", "lower", "standard deviation of tokens / mean", needs_parallel=True
    ),
    "premium": Metric(
        "premium", "lower", "tokens / tokens of the reference language", needs_parallel=True
    ),
    "levenshtein_distance": Metric(
        "drift", "neither", "edits per line from the tokens of the base", needs_base=True
    ),
    "exact_match_rate": Metric(
        "drift", "neither", "share of lines cut as by the base", needs_base=True
    ),
    "vocabulary_overlap": Metric(
        "vocabulary", "neither", "tokens shared with the base / smaller one", needs_base=True
    ),
    "pairwise_overlap": Metric(
        "vocabulary", "neither", "tokens shared with another subject / smaller one"
    ),
    "vocab_size": Metric("vocabulary", "neither", "tokens of the model"),
    "script_share": Metric("vocabulary", "neither", "share of the vocabulary, by script"),
    "language_share": Metric("vocabulary", "neither", "share of the vocabulary that a text uses"),
    "own_language_share": Metric(
        "vocabulary", "neither", "share of the vocabulary that only this language uses"
    ),
    "superword_share": Metric("vocabulary", "neither", "share of superwords in the vocabulary"),
    "terminal_spanning_count": Metric(
        "vocabulary", "lower", "tokens with text behind the end of a sentence"
    ),
    "unused_share": Metric("vocabulary", "lower", "share of the vocabulary that no text uses"),
    **{
        name: Metric(family, better, summary)
        for family, members in FAMILIES.items()
        for name, (better, summary) in members.items()
    },
}
"""All metrics, in the order in which they are listed and computed."""

EVERY = "all"
"""In the place of names: every metric that the input allows."""


def check_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """`names` without repetitions, or ValueError with the metrics that are known.

    `EVERY` stands for all of them.
    """
    given = (names,) if isinstance(names, str) else tuple(names)
    wanted = tuple(
        dict.fromkeys(name for one in given for name in (METRICS if one == EVERY else (one,)))
    )
    unknown = [name for name in wanted if name not in METRICS]
    known = f"known are: {', '.join(METRICS)}, and {EVERY}"
    if unknown:
        raise ValueError(f"unknown metric {unknown[0]!r}; {known}")
    if not wanted:
        raise ValueError(f"no metric is given; {known}")
    return wanted


def terms(name: str, counts: LineCounts, base: LineCounts | None = None) -> Terms:
    """Numerator and denominator of a ratio, or of a frequency bin, on each line.

    `base` holds the counts of the base tokenizer on the same lines; only
    "normalized_sequence_length" (tokens over the base's tokens) needs it.
    """
    if name in BIN_METRICS:
        number = BIN_METRICS[name]
        return counts.tokens_in_bin[:, number], counts.words_in_bin[:, number]
    if name != BASE_METRIC:
        return _RATIOS[name](counts)
    if base is None:
        raise ValueError(f"{BASE_METRIC} compares with a base tokenizer; give one as base")
    return counts.n_tokens, base.n_tokens
