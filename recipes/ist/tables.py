"""The tables of this recipe's README compared with the paper's (`recipes/data/record.py`).

Rows: those of `ablate.sh` and `syllables.sh` in `results.jsonl`, and of the tokenizer of 200,000
tokens those that `run.sh` put into `model_cards/ist-200k`, its counts among them.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers", "ist")]
import beside
import syllables
from record import Row, crossed, read

CARD = Path(__file__).parents[2] / "model_cards" / "ist-200k" / "results.jsonl"
NAMES = {
    "ist": "IST",
    "Llama-4": "LLaMA-4",
    "o200k": "GPT-oss",
    "Mistral-Nemo": "Mistral-Nemo",
    "Llama-3": "LLaMA-3.2",
    "DeepSeek-V3": "DeepSeek-R1",
}
"""Ours, and the paper's names of the same tokenizers."""
[HOW] = read(CARD.with_name("made.json"))
OF_CARD = {"3": "fertility", "4": "normalized_sequence_length", "7": "bytes_per_token"}
ENTROPY = {"renyi_entropy": "Entropy", "renyi_efficiency": "Efficiency"}


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    card = of_card(read(CARD))
    how = [{**HOW, "row": name} for name in {row["table"] for row in card}]
    found = beside.tables("ist", [*card, *how, *rows])
    counts = read(CARD.with_name("counts.jsonl"))
    made = f"*{beside.how(HOW)}.*"
    found["invariants"] = f"{crossed(counts, 'count', 'tokenizer')}\n\n{made}"
    found["ist-9-all"] = of_all_languages(rows, "ist-9", "All languages", "One corpus", ("Merged",))
    title = "What each ingredient brings"
    found["ingredients"] = of_all_languages(rows, "ingredients", title, "all")
    if kept := syllables.table(rows):
        found["syllables"] = kept
    return found


def of_all_languages(
    rows: list[Row], table: str, title: str, base: str, only: tuple[str, ...] = ()
) -> str:
    """A table of ours alone, over all languages and not only those that the paper has."""
    ours = {row["row"]: row["values"] for row in rows if row["table"] == table}
    ours = {name: own for name, own in ours.items() if not only or name in (*only, base)}
    [made] = [row for row in rows if (row["table"], row["row"]) == ("made", table)]
    columns = [*sorted(set(ours[base]) - {"code"}), "code"]
    text = beside.effects({"columns": columns, "base": base}, ours)
    return f"### {title}\n\n{text}\n\n*{beside.how(made)}.*"


def of_card(measured: list[Row]) -> list[Row]:
    """The rows of Tables 3, 4, 6 and 7 from what was measured at 200,000 tokens."""
    known = [row for row in measured if row["subject"] in NAMES and row["language"] != "all"]
    rows: list[Row] = []
    for table, metric in OF_CARD.items():
        for subject, name in NAMES.items():
            own = {
                row["language"]: row["value"]
                for row in known
                if (row["subject"], row["metric"]) == (subject, metric)
            }
            rows.append({"table": f"ist-{table}", "row": name, "values": own})
    for metric, name in ENTROPY.items():
        means = {
            NAMES[subject]: own
            for subject in NAMES
            if (own := _mean(known, subject, metric)) is not None
        }
        rows.append({"table": "ist-6", "row": name, "values": means})
    return rows


def _mean(rows: list[Row], subject: str, metric: str) -> float | None:
    own = [
        row["value"]
        for row in rows
        if (row["subject"], row["metric"]) == (subject, metric) and row["language"] != "code"
    ]
    return sum(own) / len(own) if own else None
