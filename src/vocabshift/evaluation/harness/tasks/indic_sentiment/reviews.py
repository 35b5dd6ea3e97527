"""IndicSentiment's rows with names that a template can use."""

from __future__ import annotations

from typing import Any


def with_plain_names(dataset: Any) -> Any:
    """Columns `review` and `sentiment`; the few rows without a label or text are left out."""
    found = dataset.filter(lambda row: bool(row["LABEL"]) and bool(row["INDIC REVIEW"]))
    return found.map(lambda row: {"review": row["INDIC REVIEW"], "sentiment": row["LABEL"]})
