"""Put what `vocabshift latency --output` wrote into the results of this recipe.

python recipes/smollm2/latency_rows.py latency.jsonl results.jsonl
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
import record

KEPT = ("output_tokens_per_second", "output_bytes_per_second", "prompt_tokens")


def main() -> None:
    """A row for each model and language."""
    source, target = map(Path, sys.argv[1:])
    rows: dict[tuple[str, str], record.Row] = {}
    for row in record.read(source):
        if row["metric"] in KEPT:
            key = row["subject"], row["language"]
            name = f"{row['subject']}, {row['language']}"
            rows.setdefault(key, {"what": "latency", "row": name, "text": row["language"]})
            rows[key][row["metric"]] = round(row["value"], 2)
    record.add(target, rows.values(), key=("what", "row"))


if __name__ == "__main__":
    main()
