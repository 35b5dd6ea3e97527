"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown

SAID = ("weak_rejected", "strong_rejected")
UNSAID = ("strong_verified", "weak_verified")
GROUPS = {
    "cosine": "`cosine` (default)",
    "centred": "`centred`",
    "without-component": "`without-component`",
    "distance": "`distance`",
    "norm": "`norm`, the shortest",
    "longest": "the longest rows",
    "parts": "bytes and parts of characters",
    "control": "drawn by chance",
}

INDICATORS = ("norm", "cosine", "centred", "without-component", "distance")
FACTS = {
    "suspect": "suspect tokens in all",
    "suspect_late": "suspect of the last 10 %",
    "unseen_late": "of the last 10 %, never in the text",
    "median_count_late": "median count of the last 10 %",
    "superwords": "superwords",
    "bits_per_byte": "bits per byte at the end of training",
    "nats_per_token": "loss: nats per token at the end of training",
}
Value = float | Sequence[float]


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    tokens = [row for row in rows if row["what"] == "token"]
    return {
        "planted": planted([row for row in rows if row["what"] == "planted"]),
        "superwords": superwords([row for row in rows if row["what"] == "superwords"]),
        "real-precision": _precision(tokens),
        "real-reasons": _reasons(tokens),
        "real-tokens": _tokens(tokens),
    }


def planted(rows: list[Row]) -> str:
    """By embeddings and indicator, means over seeds."""
    columns = {
        "precision": "precision",
        "precision_rare": "≤ 2 times",
        "recall": "recall",
        "recall_planted": "of planted",
        "average_precision": "AP",
    }
    cells = []
    for kind in ("tied", "untied"):
        for indicator in INDICATORS:
            own = [row for row in rows if (row["kind"], row["indicator"]) == (kind, indicator)]
            line = (_span([row[column] for row in own], "{:.3f}", "{:.2f}") for column in columns)
            cells.append((kind, indicator, *line))
    table = markdown(("embeddings", "indicator", *columns.values()), cells, left=2)
    facts = (
        _span([row[key] for row in rows], "{:,.0f}") for key in ("tokens", "unseen", "planted")
    )
    tokens, unseen, of_them = facts
    return (
        f"{tokens} tokens that text yields, of which {unseen} were never seen, {of_them} of them "
        f"planted; mean (lowest–highest) of {_seeds(rows)} seeds.\n\n{table}\n\n{_made(rows)}"
    )


def superwords(rows: list[Row]) -> str:
    """By K the tokens of the last tenth, mean (lowest–highest) over seeds; then other facts."""
    own = {name: [row for row in rows if row["tokenizer"] == name] for name in ("bpe", "ist")}
    cells = []
    for place, point in enumerate(own["bpe"][0]["curve"]):
        line = ([row["curve"][place]["last_tenth"] for row in some] for some in own.values())
        cells.append((f"K = {point['k']}", *(_span(values) for values in line)))
    for key, name in FACTS.items():
        if key in rows[0]:
            cells.append((name, *(_span([row[key] for row in some]) for some in own.values())))
    head = "of the K nearest to unused rows, from the last 10 % of ids"
    return f"{markdown((head, 'BPE', 'IST'), cells)}\n\n{_made(rows)}"


def _seeds(rows: list[Row]) -> int:
    return len({row["seed"] for row in rows if "seed" in row}) or int(rows[0]["seeds"])


def _made(rows: list[Row]) -> str:
    return f"*{_seeds(rows)} seeds, `recipes/glitch/run.sh`.*"


def _span(values: Sequence[Value], mean: str = "{:.4g}", ends: str | None = None) -> str:
    """The mean, and the lowest and highest where they differ, or where `ends` is given.

    A value is that of a seed; rows without seeds have (mean, lowest, highest) of all of them.
    """
    [first, *_] = values
    if isinstance(first, Sequence):
        middle, low, high = first
    else:
        seeds = [float(value) for value in values if not isinstance(value, Sequence)]
        middle, low, high = statistics.mean(seeds), min(seeds), max(seeds)
    shown = mean.format(middle)
    if low == high and ends is None:
        return shown
    return f"{shown} ({(ends or mean).format(low)}–{(ends or mean).format(high)})"


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not n:
        return 0.0, 1.0
    z, share = 1.959964, hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def _precision(tokens: list[Row]) -> str:
    cells = []
    for name, label in GROUPS.items():
        own = [row for row in tokens if name in row["places"]]
        first = [row for row in own if row["places"][name] <= 10]
        found = sum(row["verdict"] in UNSAID for row in own)
        low, high = wilson(found, len(own))
        spelled = [row["spelled"] for row in own if row["spelled"] is not None]
        cells.append(
            (
                label,
                f"{sum(row['verdict'] in UNSAID for row in first)} of {len(first)}",
                f"{found} of {len(own)}",
                f"{found / len(own):.2f} ({low:.2f}–{high:.2f})",
                f"{sum(row['verdict'] == 'strong_verified' for row in own)}",
                f"{sum(spelled) / len(spelled):.2f}" if spelled else "–",
            )
        )
    header = ("most suspect by", "of the first 10", "cannot be said", "share", "below 0.001")
    return markdown((*header, "letters spelled"), cells)


def _reasons(tokens: list[Row]) -> str:
    asked = Counter(row["reason"] or "–" for row in tokens)
    unsaid = Counter(row["reason"] or "–" for row in tokens if row["verdict"] in UNSAID)
    cells = [(name, f"{n}", f"{unsaid[name]}") for name, n in asked.most_common()]
    return markdown(("reason", "asked for", "cannot be said"), cells)


def _tokens(tokens: list[Row]) -> str:
    unsaid = [row for row in tokens if row["verdict"] not in SAID]
    cells = [
        (
            f"`{row['token'].replace('|', chr(92) + '|')}`",
            row["reason"] or "–",
            f"{row['head_cosine']:.4f}",
            f"{row['count']:,}",
            f"{row['inside']:,}",
            f"{row['max_probability']:.4f}",
            "–" if row["spelled"] is None else f"{row['spelled']:.2f}",
        )
        for row in sorted(unsaid, key=lambda row: (row["head_cosine"], row["id"]))
    ]
    header = ("token", "reason", "distance", "count", "in longer", "probability", "letters spelled")
    return markdown(header, cells, left=2)
