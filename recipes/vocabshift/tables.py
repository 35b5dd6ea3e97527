"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import numpy as np

from vocabshift.evaluation.metrics.distribution import gini

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
import beside
from record import Row, markdown

BASE = "vocabshift"
TEXTS = {"flores": "FLORES", "udhr": "UDHR"}
_DRAWS, _SEED = 10_000, 7
Values = Mapping[str, float]
"""By language."""


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name, of the rows that `parity.sh` makes: "metric, text, tokens"."""
    found: dict[tuple[str, ...], dict[str, Values]] = {}
    for row in rows:
        if row["table"] != "made":
            found.setdefault(tuple(row["table"].split(", ")), {})[row["row"]] = row["values"]
    sizes = sorted({int(size) for _, _, size in found})
    head = ["tokens", "recipe"]
    for name in TEXTS.values():
        head += [f"{name}: fertility", "against vocabshift", "Gini", "against vocabshift"]
    cells = []
    for size in sizes:
        for recipe in found["fertility", "flores", str(size)]:
            line = [f"{size:,}", recipe]
            for text in TEXTS:
                fertility, tokens = (
                    found[metric, text, str(size)] for metric in ("fertility", "tokens_per_line")
                )
                own, base = fertility[recipe], fertility[BASE]
                is_base = recipe == BASE
                line += [f"{fmean(own.values()):.3f}"]
                line += ["–" if is_base else beside.difference(own, base, list(base))]
                line += [f"{gini(list(tokens[recipe].values())):.3f}"]
                line += ["–" if is_base else gini_difference(tokens[recipe], tokens[BASE])]
            cells.append(line)
    counted = ", ".join(
        f"{len(found['fertility', text, str(sizes[0])][BASE])} languages of {name}"
        for text, name in TEXTS.items()
    )
    made = next(row for row in rows if row["table"] == "made")
    return {"parity": f"{markdown(head, cells, left=2)}\n\n*{counted}. {beside.how(made)}.*"}


def gini_difference(one: Values, base: Values) -> str:
    """Gini of `one` minus that of `base`, with its 95 % interval over languages.

    A percentile bootstrap that draws the same languages for both.
    """
    pair = np.array([[one[label], base[label]] for label in base]).T
    n = pair.shape[1]
    drawn = pair[:, np.random.default_rng(_SEED).integers(0, n, (_DRAWS, n))]
    own, of_base = gini(pair)
    low, high = np.quantile(gini(drawn[0]) - gini(drawn[1]), (0.025, 0.975))
    return f"{own - of_base:+.3f} ({low:+.3f} to {high:+.3f})"
