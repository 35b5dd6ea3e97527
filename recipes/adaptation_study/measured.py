"""What came of the study, as rows: from what study.py, `evaluate` and `latency` wrote.

    python recipes/adaptation_study/measured.py runs/adaptation

Writes OUT/rows.jsonl, of which `tables.py` makes the README's tables, and OUT/results.jsonl with
bits per byte and accuracy as rows of results. Measures nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from arms import ARMS, BASE, TOKENIZERS, Arm
from intervals import Floats, Interval, over_seeds_and_documents

import vocabshift as vs

sys.path.append(str(Path(__file__).parents[1] / "data"))
import record
import rows as recorded

Runs = dict[str, list[dict[str, Any]]]
"""By key of the arm, the runs of all seeds, in order of the seeds."""

KEY = ("table", "row")
LATENCY = (
    *("input_tokens", "ttft_seconds", "output_tokens_per_second", "output_bytes_per_second"),
    "text_bytes_per_second",
)


def load(out: Path) -> Runs:
    """What there is of every arm; only seeds that have all arms."""
    seeds = sorted(
        seed
        for seed in {int(file.name.split("-")[0]) for file in (out / "arms").glob("*.json")}
        if all((out / "arms" / f"{seed}-{arm.key}.json").exists() for arm in ARMS)
    )
    if not seeds:
        raise SystemExit(f"{out}/arms holds no seed with all arms; run study.py")
    return {
        arm.key: [
            json.loads((out / "arms" / f"{seed}-{arm.key}.json").read_text(encoding="utf-8"))
            for seed in seeds
        ]
        for arm in ARMS
    }


def bits(runs: list[dict[str, Any]], language: str) -> tuple[Floats, Floats]:
    """(n_seeds, n_documents) bits, and (n_documents,) bytes, which are the same for all."""
    documents = np.array([run["documents"][language] for run in runs], dtype=np.float64)
    return documents[:, :, 1] / math.log(2), documents[0, :, 0]


def price(runs: list[dict[str, Any]], language: str) -> Interval:
    """Bits per byte after training."""
    return over_seeds_and_documents(*bits(runs, language))


def price_difference(runs: Runs, a: Arm, b: Arm, language: str) -> Interval:
    """Of `a` to `b`, paired; below zero `a` is better."""
    of_a, sizes = bits(runs[a.key], language)
    of_b, _ = bits(runs[b.key], language)
    return over_seeds_and_documents(of_a - of_b, sizes)


def accuracy(runs: list[dict[str, Any]], language: str) -> Interval:
    """Of the probe on SIB-200's test split."""
    hits = np.array([run["sib200"][language] for run in runs], dtype=np.float64)
    return over_seeds_and_documents(hits, np.ones(hits.shape[1]))


def half(interval: Interval) -> float:
    """Half the width of an interval."""
    return (interval.high - interval.low) / 2


def languages_of(runs: Runs) -> list[str]:
    """New languages first."""
    run = runs["nothing"][0]
    return [*run["new"], *run["home"]]


def mean_at(runs: list[dict[str, Any]], point: int, language: str) -> float:
    """Bits per byte on the documents of the curve, the mean over seeds."""
    return statistics.mean(run["curve"][point]["bits_per_byte"][language] for run in runs)


def pairs() -> list[tuple[Arm, Arm]]:
    """What is held against what."""
    nothing = ARMS[0]
    fvt = {name: Arm(name, "fvt") for name in TOKENIZERS}
    return [
        *((arm, nothing) for arm in fvt.values()),
        (fvt["continued"], fvt["regen"]),
        (fvt["repaired"], fvt["continued"]),
        (fvt["ist"], fvt["repaired"]),
        (fvt["matra"], fvt["ist"]),
        *((fvt[name], Arm(name, "random")) for name in TOKENIZERS),
    ]


def bits_rows(runs: Runs) -> list[record.Row]:
    """Before and after training, by arm and language."""
    found = []
    for arm in ARMS:
        own = runs[arm.key]
        after = {name: price(own, name) for name in languages_of(runs)}
        found.append(
            {
                "row": arm.name,
                "before": {name: mean_at(own, 0, name) for name in after},
                "after": {name: [each.value, half(each)] for name, each in after.items()},
            }
        )
    return found


def difference_rows(runs: Runs) -> list[record.Row]:
    """Paired differences in bits per byte: value, interval, whether it is clear."""
    found = []
    for a, b in pairs():
        own = {name: price_difference(runs, a, b, name) for name in languages_of(runs)}
        values = {name: [each.value, each.low, each.high] for name, each in own.items()}
        clear = [name for name, each in own.items() if each.is_clear]
        found.append({"row": f"{a.name} − {b.name}", "values": values, "clear": clear})
    return found


def topics_rows(runs: Runs) -> list[record.Row]:
    """SIB-200, and what the most frequent topic would give."""
    languages = list(runs["nothing"][0]["sib200"])
    found: list[record.Row] = []
    for arm in ARMS:
        own = {name: accuracy(runs[arm.key], name) for name in languages}
        values = {name: [each.value, half(each)] for name, each in own.items()}
        found.append({"row": arm.name, "values": values})
    majority = runs["nothing"][0]["sib200_majority"]
    values = {name: [majority[name]] for name in languages}
    return [*found, {"row": "(the most frequent topic)", "values": values}]


def tokenizer_rows(runs: Runs, compression: vs.Results) -> list[record.Row]:
    """What a tokenizer makes of text, and what training with it took."""
    languages = compression.distinct("language")
    found = []
    for name in (BASE, *TOKENIZERS):
        own = [run for arm in ARMS if arm.tokenizer == name for run in runs[arm.key]]
        values = {of: compression.value(name, of, "bytes_per_token") for of in languages}
        facts = {
            key: statistics.mean(run[key] for run in own)
            for key in ("n_tokens", "n_steps", "cpu_seconds")
        }
        found.append({"row": name, "rows": own[0]["rows"], "values": values, **facts})
    return found


def glitch_rows(runs: Runs) -> list[record.Row]:
    """Suspect tokens of each seed, and the tokens judged; the same of superwords alone."""
    found = []
    for arm in ARMS:
        facts = [run["glitch"] for run in runs[arm.key]]
        suspect = [each["n_suspect"] for each in facts]
        judged = statistics.mean(each["n_judged"] for each in facts)
        row = {"row": arm.name, "judged": judged, "suspect": [min(suspect), max(suspect)]}
        row["share"] = statistics.mean(suspect) / judged
        classes = [each for fact in facts for each in fact["classes"]]
        superwords = [each for each in classes if each["class"] == "superword"]
        if superwords:
            suspect = [each["suspect"] for each in superwords]
            row["superwords"] = superwords[0]["tokens"]
            row["suspect_superwords"] = [min(suspect), max(suspect)]
        found.append(row)
    return found


def latency_rows(measured: Mapping[str, Any]) -> list[record.Row]:
    """Time to first token and speed, by tokenizer and language."""
    results = vs.Results(vs.Result(**row) for row in measured["results"])
    found = []
    for language in results.distinct("language"):
        for subject in results.distinct("subject"):
            values = {}
            for metric in LATENCY:
                [row] = results.where(subject=subject, language=language, metric=metric)
                values[metric] = [row.value]
                if row.ci_low is not None and row.ci_high is not None:
                    values[metric].append((row.ci_high - row.ci_low) / 2)
            name = f"{language}: {subject.removesuffix('-fvt')}"
            found.append({"row": name, "values": values})
    return found


def results(runs: Runs) -> vs.Results:
    """Bits per byte and accuracy as rows of results, n = seeds x documents."""
    found = []
    for arm in ARMS:
        own = runs[arm.key]
        for name in languages_of(runs):
            value, n = price(own, name), len(own) * len(own[0]["documents"][name])
            low, high = value.low, value.high
            found.append(vs.Result(arm.key, name, "bits_per_byte", value.value, n, low, high))
        for name in own[0]["sib200"]:
            value, n = accuracy(own, name), len(own) * len(own[0]["sib200"][name])
            low, high = value.low, value.high
            found.append(vs.Result(arm.key, name, "sib200_accuracy", value.value, n, low, high))
    return vs.Results(found)


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    runs = load(out)
    evaluated = (out / "tokenizers.jsonl").read_text(encoding="utf-8")
    compression = vs.Results.from_jsonl(evaluated)
    latency = json.loads((out / "latency.json").read_text(encoding="utf-8"))
    tables = {
        "tokenizers": tokenizer_rows(runs, compression),
        "bits-per-byte": bits_rows(runs),
        "differences": difference_rows(runs),
        "sib200": topics_rows(runs),
        "glitch": glitch_rows(runs),
        "latency": latency_rows(latency),
    }
    [first, *_] = runs["nothing"]
    study = {
        "table": "made",
        "row": "study",
        "seeds": len(runs["nothing"]),
        "bytes": round(statistics.mean(run["n_bytes"] for run in runs["nothing"])),
        "languages": languages_of(runs),
        "texts": compression.distinct("language"),
        "topics": list(first["sib200"]),
        "machine": recorded.machine(),
        **recorded.sources(map(json.loads, evaluated.splitlines())),
    }
    (out / "rows.jsonl").unlink(missing_ok=True)
    found = [
        {"table": table, "place": place, **row}
        for table, own in tables.items()
        for place, row in enumerate(own)
    ]
    record.add(out / "rows.jsonl", [study, *found], key=KEY)
    results(runs).save(out / "results.jsonl")


if __name__ == "__main__":
    main()
