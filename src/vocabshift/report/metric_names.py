"""What metrics are called in print, and which way is better.

Owns names and directions, nothing else; a metric that is not here is printed by its own name, and
no value of it is called the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", None]


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric in print."""

    title: str
    better: Better = None

    @property
    def arrow(self) -> str:
        """An arrow that shows which way is better."""
        return {"lower": " ↓", "higher": " ↑", None: ""}[self.better]


_NAMES = {
    "fertility": MetricName("Fertility (tokens per word)", "lower"),
    "bytes_per_token": MetricName("Bytes per token", "higher"),
    "characters_per_token": MetricName("Characters per token", "higher"),
    "tokens_per_character": MetricName("Tokens per character", "lower"),
    "sequence_reduction": MetricName("Sequence reduction (1 - tokens / bytes)", "higher"),
    # No direction: a tokenizer that cuts every character into bytes has a rate of 0.
    "single_character_rate": MetricName("Share of tokens that are one character"),
    "normalized_sequence_length": MetricName(
        "Normalized sequence length (tokens / tokens of the base tokenizer)", "lower"
    ),
    "word_fragmentation_rate": MetricName("Share of words in more than one token", "lower"),
    "renyi_entropy": MetricName("Rényi entropy", "lower"),  # IST, Table 6
    "renyi_efficiency": MetricName("Rényi efficiency", "higher"),
    "gini": MetricName("Gini coefficient of token totals over languages", "lower"),
    "normalized_variance": MetricName("Normalized variance of token totals", "lower"),
    "total_tokens": MetricName("Tokens in all", "lower"),
}


def metric_name(metric: str) -> MetricName:
    """How a metric is printed."""
    return _NAMES.get(metric, MetricName(metric))
