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
    written = {
        what: [row for row in rows if row["what"] == what] for what in ("ids", "greedy", "answers")
    }
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
        "written": markdown(
            ("the file in llama.cpp", "what is compared", "equal"),
            [
                *(
                    (
                        row["row"],
                        f"ids of {row['tokens']:,} tokens with the folder's",
                        f"{row['equal_ids']:,} of {row['texts']:,} texts",
                    )
                    for row in written["ids"]
                ),
                *(
                    (
                        row["row"],
                        f"{row['tokens'] // row['texts']} tokens after a prompt with transformers'",
                        f"{row['equal']} of {row['texts']} prompts",
                    )
                    for row in written["greedy"]
                ),
                *(
                    (
                        row["row"],
                        "the text after each prompt whose tokens stay, with the whole file",
                        f"{row['equal']} of {row['texts_whose_tokens_stay']} prompts",
                    )
                    for row in written["answers"]
                ),
            ],
            left=2,
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
        "patterns": markdown(
            ("pattern", "changes", "bytes per pre-token, Hindi", "English"),
            [
                (
                    *(f"`{row['row']}`", row["changes"]),
                    *(f"{row['ceilings'][label]:.2f}" for label in ("hi", "en")),
                )
                for row in rows
                if row["what"] == "pattern"
            ],
            left=2,
        ),
        "served": markdown(
            ("text", "model", "tokens of a prompt", "first token, s", "tokens/s", "bytes/s"),
            [
                (
                    *(TEXTS[row["text"]], row["model"], f"{row['input_tokens']:.1f}"),
                    *(f"{row['ttft_seconds']:.2f}", f"{row['output_tokens_per_second']:.1f}"),
                    f"{row['output_bytes_per_second']:.0f}",
                )
                for row in sorted(
                    (row for row in rows if row["what"] == "latency"),
                    key=lambda row: (row["text"], row["row"][0] != "S"),
                )
            ],
            left=2,
        ),
        "trained": markdown(
            ("steps", "bytes of text", "bits per byte of held-out English"),
            [
                (f"{row['row']}", f"{row['bytes']:,}", f"{row['bits_per_byte']['en']:.3f}")
                for row in sorted(
                    (row for row in rows if row["what"] == "trained"), key=lambda row: row["row"]
                )
            ],
            left=0,
        ),
        "borders": _borders([row for row in rows if row["what"] == "border"]),
    }


def _borders(rows: list[Row]) -> str:
    """By task, in the order of the flag's values; what lm-eval scores of touched answers is cut."""
    order = ("heal", "split", "lm-eval")
    cells = []
    for row in sorted(rows, key=lambda row: (row["task"], order.index(row["border"]))):
        task = f"`{row['task']}`" if ":" in row["task"] else row["task"]
        if "failure" in row:
            cells.append((task, row["border"], "ends in an error", "–", "–", "–"))
            continue
        cut = row["touched"] if row["border"] == "lm-eval" else 0
        better = "–"
        if "heal_better_low" in row:
            better = f"{row['heal_better_low']:+.3f} to {row['heal_better_high']:+.3f}"
        cells.append(
            (
                *(task, row["border"], f"{row['accuracy']:.3f}", better),
                *(f"{row['touched']:.1%}", f"{cut:.1%}"),
            )
        )
    header = ("task", "`--border`", "accuracy", "heal is better by", "touched", "scored in part")
    return markdown(header, cells, left=2)
