"""What is told of a run of pre-training: the lines of `log.jsonl`, and the figures at its end.

Owns the records and how a log goes on after an interruption: lines of steps that are done again
are taken out. Knows nothing of how a model is trained.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vocabshift.cpt.steps import Evaluation, Step

FILE = "log.jsonl"

Record = dict[str, Any]


class RunLog:
    """JSON lines of one run; every line is on the disk when `add` returns to the caller."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_cut = False

    def add(self, record: Record) -> None:
        """Append a record; the first one takes the place of all that come after it in the run."""
        if not self._is_cut:
            self._cut(_key(record))
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def records(self) -> Iterator[Record]:
        """All of them, of earlier processes too; a line that a crash cut off is left out."""
        if not self._file.exists():
            return
        with self._file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                yield record

    def _cut(self, first: tuple[int, int, int]) -> None:
        self._is_cut = True
        kept = [record for record in self.records() if _key(record) < first]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in kept]
        partial.write_text("".join(lines), encoding="utf-8")
        partial.replace(self._file)


def step_record(step: Step) -> Record:
    """The step's fields; `mfu` where the peak of the device is known."""
    record = {"kind": "step", **asdict(step)}
    return {key: value for key, value in record.items() if value is not None}


def evaluation_record(evaluation: Evaluation) -> Record:
    """What the held-out text costs at this point."""
    plain = asdict(evaluation)
    bits = dict(plain.pop("values"))
    return {"kind": "evaluation", **plain, "bits_per_byte": bits}


def summary(records: Iterator[Record]) -> dict[str, Any]:
    """Of a whole run: steps, bytes, tokens, loss, seconds, and bits per byte before and after."""
    last: dict[int, Mapping[str, Any]] = {}  # of each phase
    evaluations: list[Mapping[str, float]] = []
    n_steps, seconds = 0, 0.0
    first_loss = None
    for record in records:
        if record["kind"] == "evaluation":
            evaluations.append(record["bits_per_byte"])
            continue
        first_loss = record["loss"] if first_loss is None else first_loss
        n_steps += 1
        seconds += record["seconds"]
        last[record["phase"]] = record
    n_bytes = sum(record["n_bytes"] for record in last.values())
    ends = list(last.values())
    return {
        "n_steps": n_steps,
        "n_bytes": n_bytes,
        "n_tokens": sum(record["n_tokens"] for record in ends),
        "first_loss": first_loss,
        "loss": ends[-1]["loss"] if ends else None,
        "bits_per_byte": [
            {"language": language, "before": before, "after": evaluations[-1].get(language)}
            for language, before in (evaluations[0] if evaluations else {}).items()
        ],
        "phases": [
            {key: record[key] for key in ("trained", "n_steps", "n_bytes", "n_tokens", "loss")}
            for record in ends
        ],
        "seconds": round(seconds, 3),
        "bytes_per_second": n_bytes / max(seconds, 1e-9),
    }


def _key(record: Mapping[str, Any]) -> tuple[int, int, int]:
    """Where a record stands in a run: behind its step, evaluations last."""
    return record["phase"], record["step"], 1 if record["kind"] == "evaluation" else 0
