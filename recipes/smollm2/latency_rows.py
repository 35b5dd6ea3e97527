"""Put what `vocabshift latency --output` wrote into the results of this recipe.

python recipes/smollm2/latency_rows.py latency.jsonl results.jsonl
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
import record

KEPT = ("output_tokens_per_second", "output_bytes_per_second", "input_tokens", "ttft_seconds")
NAMES = {"model": "SmolLM2", "hindi": "extended to Hindi"}


def main() -> None:
    """A row for each model and language."""
    source, target = map(Path, sys.argv[1:])
    rows: dict[tuple[str, str], record.Row] = {}
    for row in record.read(source):
        if row["metric"] in KEPT:
            key = NAMES[row["subject"]], row["language"]
            facts = {"what": "latency", "row": ", ".join(key), "model": key[0], "text": key[1]}
            rows.setdefault(key, facts)[row["metric"]] = round(row["value"], 3)
    record.add(target, rows.values(), key=("what", "row"))


if __name__ == "__main__":
    main()
