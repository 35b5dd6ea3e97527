"""The shapes of tables, as data: those of the papers, and the plain ones.

Owns which of subjects, languages and metrics are rows and which are columns, which of them a paper
shows, and their names there. `paper_tables` fills such a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Axis = Literal["subject", "language", "metric"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of a table; where languages are brought together, their mean."""

    metric: str
    head: str = ""
    is_total: bool = False  # a metric per line: times the lines, and summed over languages
    is_percent: bool = False
    decimals: int | None = None  # None: by the size of the values
    better: int | None = None  # 1: higher, -1: lower, 0: neither; None: as the registry has it


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table shows, and where. The axis that is neither down nor across: one sheet for each
    metric; languages brought together, all of one weight."""

    name: str
    down: Axis
    across: Axis
    title: str = ""  # empty: that of the metric
    measures: tuple[Measure, ...] = ()  # empty: every metric of the results
    languages: tuple[str, ...] = ()  # English names of those of the paper
    has_others: bool = True  # whether languages that the paper does not show have their place
    by_family: bool = False  # families in place of languages


IST_LANGUAGES = (
    *("Assamese", "Bengali", "Bodo", "Dogri", "English", "Konkani", "Gujarati", "Hindi"),
    *("Kashmiri", "Kannada", "Maithili", "Malayalam", "Manipuri", "Marathi", "Nepali", "Odia"),
    *("Punjabi", "Sanskrit", "Santali", "Sindhi", "Tamil", "Telugu", "Urdu"),
)
"""The 22 scheduled languages and English; the paper's text is not public."""

_MATRA_SUBSET = (
    *("Hindi", "Bengali", "Tamil", "Malayalam", "Urdu", "Manipuri", "Santali", "Odia", "English"),
)


def _ist(number: int, metric: str, title: str) -> Shape:
    return Shape(
        f"ist-{number}",
        "subject",
        "language",
        f"{title} (IST, Table {number})",
        (Measure(metric),),
        IST_LANGUAGES,
    )


_ALL = (
    Shape("languages", "language", "subject"),
    Shape("subjects", "subject", "language"),
    Shape("families", "subject", "language", by_family=True),
    _ist(3, "fertility", "Fertility, lower is better"),
    _ist(4, "normalized_sequence_length", "Normalized sequence length, lower is better"),
    Shape(
        "ist-6",
        "metric",
        "subject",
        "Rényi entropy and efficiency, means over languages (IST, Table 6)",
        (
            Measure("renyi_entropy", "Entropy"),  # the paper has it lower; by itself it is neither
            Measure("renyi_efficiency", "Efficiency ↑"),
        ),
        IST_LANGUAGES,
    ),
    _ist(7, "bytes_per_token", "Bytes per token, higher is better"),
    _ist(22, "fertility", "Fertility of all tokenizers, lower is better"),
    Shape(
        "matra-2",
        "subject",
        "metric",
        "Means over languages (Matra, Table 2)",
        (
            Measure("sequence_reduction", "SeqRed", is_percent=True, decimals=1),
            Measure("tokens_per_character", "NSL", decimals=3),
            Measure("bytes_per_token", "BPT"),
            Measure("fertility", "Fertility"),
            # A tokenizer that cuts every character into bytes has the lowest: neither.
            Measure("single_character_rate", "1ch%", is_percent=True, decimals=1, better=0),
            Measure("tokens_per_line", "Total Tokens", is_total=True, decimals=0, better=-1),
        ),
        IST_LANGUAGES,
    ),
    Shape(
        "matra-3",
        "language",
        "subject",
        "Fertility on some languages (Matra, Table 3)",
        (Measure("fertility"),),
        _MATRA_SUBSET,
        has_others=False,
    ),
    Shape(
        "matra-4",
        "subject",
        "language",
        "Fertility by variant (Matra, Table 4)",
        (Measure("fertility"),),
        ("Hindi", "Tamil", "Malayalam", "Manipuri", "Santali"),
        has_others=False,
    ),
)

SHAPES: dict[str, Shape] = {shape.name: shape for shape in _ALL}
"""Shapes by name."""
