"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown

TEXTS = {"en": "English", "de": "German", "hi": "Hindi", "code": "Python code"}


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    peers = [row for row in rows if row["what"] == "llama.cpp"]
    bits = {row["row"]: row for row in rows if row["what"] == "bits"}
    return {
        "llama.cpp": markdown(
            ("the file in llama.cpp", "equal ids", "equal top token", "largest logit difference"),
            [
                (
                    row["row"],
                    f"{row['equal_ids']} of {row['texts']} texts",
                    f"{row['equal_top']:,} of {row['positions']:,} "
                    f"({row['equal_top'] / row['positions']:.2%})",
                    f"{row['largest_logit_difference']:.3f}",
                )
                for row in peers
            ],
        ),
        "bits": markdown(
            ("text", "documents", "bits per byte", "95 % interval"),
            [
                (
                    name,
                    f"{bits[label]['documents']:,}",
                    f"{bits[label]['value']:.3f}",
                    f"{bits[label]['low']:.3f} to {bits[label]['high']:.3f}",
                )
                for label, name in TEXTS.items()
                if label in bits
            ],
        ),
        "borders": markdown(
            ("task", "`--border`", "accuracy", "questions", "touched"),
            [
                (
                    *(f"`{row['task']}`" if ":" in row["task"] else row["task"], row["border"]),
                    *_accuracy(row),
                )
                for row in rows
                if row["what"] == "border"
            ],
            left=2,
        ),
    }


def _accuracy(row: Row) -> tuple[str, str, str]:
    if "failure" in row:
        return "ends in an error", "–", "–"
    return f"{row['accuracy']:.3f}", f"{row['questions']:,}", f"{row['touched']:.1%}"
