"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import math
import sys
from collections import Counter
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


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    tokens = [row for row in rows if row["what"] == "token"]
    return {
        "real-precision": _precision(tokens),
        "real-reasons": _reasons(tokens),
        "real-tokens": _tokens(tokens),
    }


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
