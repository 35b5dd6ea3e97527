"""Put what `deploy.sh` measured into the results of this recipe: patterns, and speed.

python recipes/smollm2/deploy.py tokenizer latency.jsonl results.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
import record

KEPT = ("output_tokens_per_second", "output_bytes_per_second", "input_tokens", "ttft_seconds")
NAMES = {"model": "SmolLM2", "hindi": "extended to Hindi"}


def patterns(tokenizer: Path) -> list[record.Row]:
    """Of the pattern that was asked for, and of each that keeps every id: how far words reach."""
    written = json.loads((tokenizer / "vocabshift.json").read_text(encoding="utf-8"))
    chosen = written["figures"]["deployable"]
    return [
        {
            "what": "pattern",
            "row": each["name"],
            "ceilings": each["ceilings"],
            "documents": each["documents"],
            "changes": each["refused"].removeprefix("changes ") or "nothing",
        }
        for each in chosen["candidates"]
        if each["name"] == chosen["llama_cpp_pre"] or not each["refused"]
    ]


def speeds(source: Path) -> list[record.Row]:
    """A row for each model and language."""
    rows: dict[tuple[str, str], record.Row] = {}
    for row in record.read(source):
        if row["metric"] in KEPT:
            key = NAMES[row["subject"]], row["language"]
            facts = {"what": "latency", "row": ", ".join(key), "model": key[0], "text": key[1]}
            rows.setdefault(key, facts)[row["metric"]] = round(row["value"], 3)
    return list(rows.values())


def main() -> None:
    """Read both, and write."""
    tokenizer, latency, target = map(Path, sys.argv[1:])
    record.add(target, [*patterns(tokenizer), *speeds(latency)], key=("what", "row"))


if __name__ == "__main__":
    main()
