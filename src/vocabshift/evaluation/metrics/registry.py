"""The registry of metrics: what `metrics=`, `--metrics`, reports and docs know.

To add a metric, add a `Metric` to `METRICS` in the file of its family; or call `register`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vocabshift.evaluation.metrics import (
    code_switching,
    distribution,
    morph_score,
    numbers,
    ratios,
    robustness,
    syllable_alignment,
    vocabulary,
)
from vocabshift.evaluation.metrics.metric import Metric

_FAMILIES = (
    *(ratios.METRICS, distribution.METRICS, ratios.DRIFT, vocabulary.METRICS),
    *(syllable_alignment.METRICS, numbers.METRICS, robustness.METRICS),
    *(code_switching.METRICS, morph_score.METRICS),
)

METRICS: dict[str, Metric] = {metric.name: metric for family in _FAMILIES for metric in family}
"""The metrics of `evaluate` by name, in the order in which they are listed and computed."""

GROUPS: Mapping[str, str] = {
    "compression": "how long a text becomes; fertility compares tokenizers in one language",
    "tokens": "what kind of tokens a text becomes",
    "loss": "lines and characters that do not come back from their tokens; the rate is shown "
    "unasked where there is any, as figures of compression mean nothing there",
    "rare words": "by the rank of the word in the text, or in --frequencies",
    "distribution": "how evenly the vocabulary is used (--renyi-alpha)",
    "fairness": "over parallel texts, line n of each saying the same; premium compares with "
    "--reference",
    "vocabulary": "of the tokenizer itself, and of how much of it the texts use",
    "drift": "how far a tokenizer cuts from --base",
    "alignment": "do tokens respect what readers of a script see?",
    "morphemes": "need --morphemes, and come with it",
    "code switching": "need --code-switch, and come with it",
    "numbers": "by script of the digits",
    "robustness": "what typos, normal forms, spaces and case change",
}
"""What the metrics of a group have in common, in the order in which help and docs list them."""

BITS_PER_BYTE = Metric(
    "bits_per_byte",
    "models",
    "bits per byte",
    "of a language model's prediction",
    "lower",
    is_spoilt_by_loss=True,
    has_bars=True,
    decimals=3,
)
"""What `score` measures of models; no metric of tokenizers."""

EVERY = "all"
"""In place of names: every metric that the input allows."""


def register(metric: Metric) -> Metric:
    """Add a metric to `METRICS`; ValueError for a name that is taken."""
    if metric.name in METRICS or metric.name in (EVERY, BITS_PER_BYTE.name):
        raise ValueError(f"there is a metric {metric.name!r} already; give this one another name")
    METRICS[metric.name] = metric
    return metric


def describe(name: str) -> Metric:
    """What is known of a metric in Results; of an unknown one its name alone, with spaces."""
    if name == BITS_PER_BYTE.name:
        return BITS_PER_BYTE
    return METRICS.get(name) or Metric(name, "", name.replace("_", " "), "")


def is_known(name: str) -> bool:
    """Whether a metric in Results is of `evaluate` or `score`."""
    return name in METRICS or name == BITS_PER_BYTE.name


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


def by_group() -> dict[str, list[Metric]]:
    """The metrics of each group; groups in the order of `GROUPS`, then those that it lacks."""
    found: dict[str, list[Metric]] = {group: [] for group in GROUPS}
    for metric in METRICS.values():
        found.setdefault(metric.group, []).append(metric)
    return {group: metrics for group, metrics in found.items() if metrics}
