"""The tables of this recipe's README compared with the paper's (`recipes/data/record.py`).

Rows: those of `open.sh` in `results.jsonl`, and of the tokenizer of 200,000 tokens those that
`run.sh` put into `model_cards/matra-200k`.
"""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from pathlib import Path
from statistics import fmean

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
import beside
from record import Row, markdown, read

SWITCHED = {
    "hi+en": "hi+en by rule",
    "hindi-english": "hi+en, our own, two scripts",
    "hindi-english-latin": "hi+en in Latin letters",
    "ta+en": "ta+en by rule",
    "tamil-english": "ta+en, our own, two scripts",
    "tamil-english-latin": "ta+en in Latin letters",
}
"""Code-switched texts, by their labels."""
CARD = Path(__file__).parents[2] / "model_cards" / "matra-200k" / "results.jsonl"
NAMES = {"matra": "Matra", "Gemma-4": "Gemma-4", "o200k": "GPT-5"}
"""Ours, and the paper's names of the same tokenizers."""
[HOW] = read(CARD.with_name("made.json"))
AS_PRINTED = {
    "SeqRed": ("tokens_per_character", lambda value: 1 - value),
    "NSL": ("sequence_reduction", lambda value: 1 - value),
    "BPT": ("bytes_per_token", lambda value: value),
    "Fertility": ("fertility", lambda value: value),
    "1ch": ("single_character_rate", lambda value: value),
}
"""The paper's columns, and ours that their figures fit (docs/errata.md)."""


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    card = of_card(read(CARD))
    how = [{**HOW, "row": name} for name in {row["table"] for row in card}]
    found = beside.tables("matra", [*card, *how, *rows])
    found["matra-2-beside"] = found.pop("matra-2")  # "matra-2" is the CLI's, of all tokenizers
    found["variants-200k"] = variants(read(CARD))
    found["matra-2-other"] = _other(read(CARD.with_name("counts.jsonl")))
    if curve := {row["row"]: row["values"] for row in rows if row["table"] == "matra-section-5.5"}:
        found["matra-section-5.5"] += f"\n\n{log_law(curve)}"
    if switched := [row for row in rows if row["table"] == "code-switching"]:
        how = next(row for row in rows if row["table"] == "made" and row["row"] == "code-switching")
        found["code-switching"] = f"{_switched(switched)}\n\n*{beside.how(how)}.*"
    if spanning := [row for row in rows if row["table"] == "matra-section-6.1"]:
        found["matra-section-6.1"] = _transposed(found["matra-section-6.1"], spanning)
    return found


def of_card(measured: list[Row]) -> list[Row]:
    """The rows of Tables 2 and 3 from what was measured at 200,000 tokens."""
    rows: list[Row] = []
    for subject, name in NAMES.items():
        own = [row for row in measured if row["subject"] == subject and row["language"] != "code"]
        values = {
            metric: {row["language"]: row["value"] for row in own if row["metric"] == metric}
            for metric in {row["metric"] for row in own}
        }
        printed = {
            column: fmean(shown(value) for value in values[metric].values())
            for column, (metric, shown) in AS_PRINTED.items()
        }
        rows.append({"table": "matra-2", "row": name, "values": printed})
        rows.append({"table": "matra-3", "row": name, "values": values["fertility"]})
    return rows


def variants(measured: list[Row]) -> str:
    """Table 4 at 200,000 tokens, from what `run.sh` measured; all languages and code."""
    ours: dict[str, dict[str, float]] = {}
    for row in measured:
        if row["metric"] == "fertility" and row["subject"].startswith(("matra", "ist")):
            ours.setdefault(row["subject"], {})[row["language"]] = row["value"]
    columns = [*sorted(set(ours["matra"]) - {"code"}), "code"]
    table = beside.effects({"columns": columns, "base": "matra"}, ours)
    return f"### Variants, 200,000 tokens\n\n{table}\n\n*{beside.how(HOW)}.*"


def _other(rows: list[Row]) -> str:
    """Table 2 by the definitions that the paper's printed figures fit, parts of characters too."""
    head = ("tokenizer", "1 - tokens / characters", "tokens / bytes", "1ch% with pieces")
    cells = (
        (
            *(row["tokenizer"], f"{row['reduction']:.1%}", f"{row['length']:.4f}"),
            f"{row['single']:.1%}",
        )
        for row in rows
    )
    title = "### Means over languages, as the paper's figures fit (Matra, Table 2)"
    made = f"*{beside.how(HOW)}.*"
    return f"{title}\n\n{markdown(head, cells)}\n\n{made}"


def log_law(curve: dict[str, dict[str, float]]) -> str:
    """Fertility over the logarithm of the size: a line by least squares, and from size to size.

    Means over the languages of the table; code-switched texts are in none.
    """
    points = sorted(
        (math.log2(int(size)), fmean(value for name, value in own.items() if name not in SWITCHED))
        for size, own in curve.items()
    )
    x, y = ([point[i] for point in points] for i in (0, 1))
    mean_x, mean_y = fmean(x), fmean(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in points) / sum((a - mean_x) ** 2 for a in x)
    rest = [b - mean_y - slope * (a - mean_x) for a, b in points]
    fit = 1 - sum(r * r for r in rest) / sum((b - mean_y) ** 2 for b in y)
    steps = [f"{(d - b) / (c - a):+.3f}" for (a, b), (c, d) in pairwise(points)]
    return (
        f"Log law: each doubling of the vocabulary changes mean fertility by {slope:+.3f} "
        f"(R² = {fit:.3f}; the largest distance from the line is {max(map(abs, rest)):.3f}). "
        f"From size to size it is {', '.join(steps)}."
    )


def _switched(rows: list[Row]) -> str:
    """Fertility on code-switched texts, by tokenizer."""
    texts = [text for text in SWITCHED if text in rows[0]["values"]]
    cells = ((row["row"], *(f"{row['values'][text]:.3f}" for text in texts)) for row in rows)
    return markdown(("tokens per word", *(SWITCHED[text] for text in texts)), cells)


def _transposed(table: str, rows: list[Row]) -> str:
    """Section 6.1 with a line for each tokenizer, and the shortest of its tokens."""
    heading, *_, how = table.split("\n\n")
    columns = [*rows[0]["values"]]
    entry = beside.papers()["matra"]["tables"]["Section 6.1"]
    columns.sort(key=entry["columns"].index)
    cells = []
    for row in rows:
        shortest = ", ".join(f"`{_spelled(token)}`" for token in row["shortest"])
        numbers = (f"{row['values'][column]:,.0f}" for column in columns)
        cells.append((row["row"], *numbers, shortest or "–"))
    body = markdown(("tokenizer", *columns, "the shortest between words"), cells)
    return f"{heading}\n\n{body}\n\n{how}"


def _spelled(token: str) -> str:
    return token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣").replace("|", "¦")
