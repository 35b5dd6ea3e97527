"""One extension for many languages, with superwords on top, beside one extension for each: rows.

Reads what `vocabshift extend --json` printed without and with `--superwords`, bytes per token on
held-out text from `vocabshift evaluate --output`, and the files of curves.py for the same
tokenizer.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

from vocabshift.results import Results

WORDS, MORE, SUPERWORDS = "multilingual", "multilingual-longer", "superwords"
Figures = dict[str, Any]
Columns = dict[str, dict[str, Any]]


def together(out: Path, measured: Path, curves: list[Figures]) -> Columns:
    """By column, then by language."""
    words = json.loads((out / f"{WORDS}.json").read_text(encoding="utf-8"))
    more = json.loads((out / f"{MORE}.json").read_text(encoding="utf-8"))
    effect = json.loads((out / f"{SUPERWORDS}.json").read_text(encoding="utf-8"))
    results = Results.from_jsonl(measured.read_text(encoding="utf-8"))
    held_out = {
        (row.subject, row.language): row.value for row in results.where(metric="bytes_per_token")
    }
    [base] = set(results.distinct("subject")) - {WORDS, MORE, SUPERWORDS}
    alone = {
        curve["language"]: curve["rows"]
        for curve in curves
        if (curve["tokenizer"], curve["pre_tokenizer"]) == (base, words["pre_tokenizer"])
    }
    use = {row["language"]: row for row in words["languages"]}
    n, n_more = words["n_added"], more["n_added"] - words["n_added"]
    labels = results.distinct("language")
    subjects = {
        "before": base,
        f"{n:,} for all": WORDS,
        f"+{n_more:,} words": MORE,
        f"+{effect['superwords']:,} superwords": SUPERWORDS,
    }
    learned = [label for label in labels if label in use]
    columns: Columns = {
        "new tokens used": {label: use[label]["new_tokens_used"] for label in learned},
        "share of its tokens, %": {
            label: round(100 * use[label]["new_tokens_share"]) for label in learned
        },
    }
    for name, subject in subjects.items():
        values = {label: held_out[subject, label] for label in labels}
        mean = fmean(values[label] for label in learned)
        columns[name] = {**values, "mean of those learned": mean}
    for label, rows in alone.items():
        for row in rows:
            name = f"alone +{row['n_tokens']:,}"
            columns.setdefault(name, {})[label] = row["ours"]["bytes_per_token"]
    return columns
