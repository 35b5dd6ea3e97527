"""What the arms measured, as the rows of `results.jsonl`: values, paired differences, costs.

    python recipes/keep_the_model/results.py runs/keep_the_model/hi -o results.jsonl
    python recipes/keep_the_model/results.py … -o results.jsonl --finals finals.jsonl

Rows (`what`): "bits" (bits per byte of an arm in one language), "difference" (of an arm and
another, paired by document and seed), "cost", "continuation", "task", "curve". `on` is "some" for
the fixed lines of screening and "all" for all lines. Intervals: a bootstrap over documents, and
over seeds where there are several (`adaptation_study/intervals.py`). Measures nothing.

`finals.jsonl` has each run of a finalist with the bits of every line, so that one that is run on
another day, or on another machine, is paired with those that were run before.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path += [str(Path(__file__).parents[1] / name) for name in ("adaptation_study", "data")]
from intervals import over_seeds_and_documents
from names import arm_of
from record import Row, add, read

KEY = (
    *("what", "new", "on", "arm", "n_bytes", "language", "task", "at_bytes"),
    *("against", "against_bytes", "at_equal", "start"),
)
PRECISIONS = {"no": "float32", "bf16": "bf16"}
"""By the value of `mixed_precision`, in what matrices are multiplied."""
FINAL_KEY = ("what", "new", "arm", "n_bytes", "seed")
NEIGHBOURS = {
    "swap": ("trimmed", "superwords", "extension"),
    "trimmed": ("superwords", "extension"),
    "superwords": ("extension",),
}
"""By tokenizer, those that its arms are held against."""
Runs = dict[tuple[str, int], list[dict[str, Any]]]
"""By arm and bytes of text, the runs of its seeds."""


def load(folder: Path) -> list[Row]:
    """The runs in a folder."""
    return [
        json.loads(file.read_text("utf-8")) | {"n_bytes": int(file.stem.rsplit(".", 2)[1])}
        for file in sorted(folder.glob("*.json"))
    ]


def by_arm(found: list[Row]) -> Runs:
    """Runs of an arm side by side, by seed."""
    runs: Runs = {}
    for run in sorted(found, key=lambda run: run["seed"]):
        runs.setdefault((run["arm"], run["n_bytes"]), []).append(run)
    return runs


def keep(file: Path, found: list[Row]) -> list[Row]:
    """Put runs of finalists into the file, and return those of the same languages that it has.

    Sizes of the lines are stored once, their text never.
    """
    rows = []
    for run in found:
        documents, new = run["documents"], run["new"]
        sizes = {name: [size for size, _ in own] for name, own in documents.items()}
        rows.append({"what": "sizes", "new": new, "sizes": sizes})
        nats = {name: [round(nats, 1) for _, nats in own] for name, own in documents.items()}
        written = {
            name: {key: value for key, value in own.items() if key != "examples"}
            for name, own in run.get("continuations", {}).items()
        }
        facts = {key: value for key, value in run.items() if key not in ("documents", "stage")}
        rows.append(facts | {"what": "run", "nats": nats, "continuations": written})
    add(file, rows, key=FINAL_KEY)
    kept = [row for row in read(file) if row["new"] in [run["new"] for run in found]]
    sizes = {tuple(row["new"]): row["sizes"] for row in kept if row["what"] == "sizes"}
    for row in kept:
        for name, own in row.get("nats", {}).items():
            pairs = zip(sizes[tuple(row["new"])][name], own, strict=True)
            row.setdefault("documents", {})[name] = list(pairs)
    return [row for row in kept if row["what"] == "run"]


def amounts(runs: list[dict[str, Any]], language: str) -> tuple[np.ndarray, np.ndarray]:
    """(n_seeds, n_documents) bits, and (n_documents,) bytes."""
    documents = np.array([run["documents"][language] for run in runs], dtype=np.float64)
    return documents[:, :, 1] / math.log(2), documents[0, :, 0]


def rows_of(runs: Runs, on: str) -> Iterator[Row]:
    """All rows of one folder."""
    for (name, n_bytes), own in runs.items():
        first = own[0]
        same = {"new": "+".join(first["new"]), "on": on, "arm": name, "n_bytes": n_bytes}
        for language in first["documents"]:
            bits, sizes = amounts(own, language)
            found = over_seeds_and_documents(bits, sizes)
            yield {
                "what": "bits",
                **same,
                "language": language,
                "seeds": len(own),
                "documents": len(sizes),
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "bytes_per_token": sizes.sum() / first["tokens"][language],
            }
            for at_equal, others in (("bytes", pairs), ("seconds", in_equal_seconds)):
                for against in others(runs, name, n_bytes):
                    if row := difference(runs, own, against, language):
                        yield row | same | {"at_equal": at_equal}
        yield cost(own) | same
        yield from (row | same for row in once(own))


def pairs(runs: Runs, name: str, n_bytes: int) -> Iterator[tuple[str, int]]:
    """What an arm is held against: the old model, itself before training, and its neighbours."""
    arm = arm_of(name)
    wanted = [("base", 0), ("base-all", n_bytes), (arm.before.name, 0)]
    wanted += [(f"base-{arm.trained}", n_bytes)]
    if arm.is_matching:
        plain = name.removesuffix(f"-{arm.objective}")
        wanted += [(plain, n_bytes), (f"{plain}-matching", n_bytes)]
    if arm.init not in (None, "fvt"):
        wanted.append((name.replace(f"-{arm.init}-", "-fvt-"), n_bytes))
    for other in NEIGHBOURS.get(arm.tokenizer, ()):
        for init in dict.fromkeys((arm.init, "fvt")):
            objective = f"-{arm.objective}" if arm.is_matching else ""
            wanted.append((f"{other}-{init}-{arm.trained}{objective}", n_bytes))
            whole = arm.trained if arm.phase == "all" else "all"
            wanted.append((f"{other}-{init}-{whole}", n_bytes))
    if arm.trained not in ("none", "all"):
        wanted.append((name.replace(f"-{arm.trained}", "-all"), n_bytes))
    for key in dict.fromkeys(wanted):
        if key in runs and key != (name, n_bytes):
            yield key


def in_equal_seconds(runs: Runs, name: str, n_bytes: int) -> Iterator[tuple[str, int]]:
    """Arms at the same rate that read more or less text in as many CPU seconds, within 10 %."""
    if not n_bytes:
        return
    ours = seconds(runs[name, n_bytes])
    for arm, size in sorted(runs):
        is_other = arm > name and size not in (0, n_bytes)
        if is_other and runs[arm, size][0].get("device") != runs[name, n_bytes][0].get("device"):
            continue  # seconds of two kinds of machine
        if is_other and arm_of(arm).trained == arm_of(name).trained:
            theirs = seconds(runs[arm, size])
            if max(ours, theirs) <= 1.1 * min(ours, theirs):
                yield arm, size


def seconds(own: list[Row]) -> float:
    """CPU seconds of rows, teaching and training: the sum of medians over seeds."""
    training = [run["training"] for run in own]
    taught = [each.get("teaching", {}).get("cpu_seconds", 0.0) for each in training]
    trained = statistics.median(each["cpu_seconds"] for each in training)
    return float(own[0]["making"]["cpu_seconds"] + trained + statistics.median(taught))


def difference(runs: Runs, own: list[Row], against: tuple[str, int], language: str) -> Row:
    """Of an arm and another, on the same documents; below zero the arm is better.

    Empty where no seed was run of both.
    """
    other = runs[against]
    if not against[1]:  # nothing was drawn by seed
        other = [run | {"seed": seed["seed"]} for run in other[:1] for seed in own]
    theirs_by_seed = {run["seed"]: run for run in other}
    both = [run for run in own if run["seed"] in theirs_by_seed]
    if not both:
        return {}
    ours, sizes = amounts(both, language)
    theirs, _ = amounts([theirs_by_seed[run["seed"]] for run in both], language)
    found = over_seeds_and_documents(ours - theirs, sizes)
    return {
        "what": "difference",
        "language": language,
        "against": against[0],
        "against_bytes": against[1],
        "seeds": len(both),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "is_clear": found.is_clear,
    }


def cost(own: list[Row]) -> Row:
    """What making the rows and training them took, the median over seeds, with the commands."""
    training = [run.get("training", {}) for run in own]
    return {
        "what": "cost",
        "seeds": len(own),
        "making_cpu_seconds": own[0]["making"]["cpu_seconds"],
        "making_wall_seconds": own[0]["making"]["wall_seconds"],
        **{
            f"training_{key}": statistics.median(each.get(key, 0) for each in training)
            for key in ("cpu_seconds", "wall_seconds", "n_tokens", "n_steps")
        },
        "teaching_cpu_seconds": statistics.median(
            each.get("teaching", {}).get("cpu_seconds", 0.0) for each in training
        ),
        "rows": own[0]["rows"],
        "precision": PRECISIONS[own[0]["mixed_precision"]],
        "device": own[0].get("device", "cpu"),
        "commands": [
            each["command"] for each in (own[0]["making"], training[0]) if each.get("command")
        ],
        "reads_tokens_per_second": own[0]["reads_tokens_per_second"],
        "reads_bytes_per_second": own[0]["reads_bytes_per_second"],
    }


def once(own: list[Row]) -> Iterator[Row]:
    """Continuations, tasks and the curve, which the first seed alone has."""
    for language, found in own[0].get("continuations", {}).items():
        if not found["chrf"]:
            continue
        ones = np.ones(len(found["chrf"]))
        chrf = over_seeds_and_documents(np.array([found["chrf"]]), ones)
        yield {
            "what": "continuation",
            "language": language,
            "lines": len(ones),
            "chrf": chrf.value,
            "chrf_low": chrf.low,
            "chrf_high": chrf.high,
            "right_word": statistics.mean(found["right_word"]),
            "repetition": statistics.mean(found["repetition"]),
            "tokens_per_second": found["tokens_per_second"],
            "bytes_per_second": found["bytes_per_second"],
            "device": own[0].get("device", "cpu"),
        }
    for row in own[0].get("tasks", []):
        if "failure" in row:
            yield {"what": "task", "task": row["task"], "failure": row["failure"]}
        elif row["metric"].endswith("/acc"):
            yield {
                "what": "task",
                "task": f"{row['metric']}:{row['language']}",
                "value": row["value"],
                "low": row["ci_low"],
                "high": row["ci_high"],
                "questions": row["n"],
            }
    yield from curve(own[0].get("training", {}))


def curve(training: Row) -> Iterator[Row]:
    """Bits per byte of the few held-out lines along the training."""
    for point in training.get("curve", []):
        for language, value in point["bits_per_byte"].items():
            at = {"at_bytes": point["n_bytes"], "language": language}
            yield {"what": "curve", **at, "value": value}


def only_trained(out: Path, new: str) -> Iterator[Row]:
    """The curves of finalists of the first seed that were trained and not measured."""
    for file in sorted((out / "costs").glob("*.0.facts.json")):
        arm, n_bytes, _ = file.name.removesuffix(".facts.json").rsplit(".", 2)
        if not any(
            (out / each / f"{arm}.{n_bytes}.0.json").exists() for each in ("arms", "finals")
        ):
            same = {"new": new, "on": "all", "arm": arm, "n_bytes": int(n_bytes)}
            yield from (row | same for row in curve(json.loads(file.read_text("utf-8"))))


def rounded(row: Row) -> Row:
    """Five digits after the point are enough."""
    return {key: round(v, 5) if isinstance(v, float) else v for key, v in row.items()}


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--finals", type=Path, help="keep the finalists' runs in this file, too")
    args = parser.parse_args()
    for folder, on in (("arms", "some"), ("finals", "all")):
        found = load(args.out / folder)
        if args.finals and on == "all":
            found = keep(args.finals, found)
        add(args.output, map(rounded, rows_of(by_arm(found), on)), key=KEY)
    if found:
        new = "+".join(found[0]["new"])
        add(args.output, map(rounded, only_trained(args.out, new)), key=KEY)


if __name__ == "__main__":
    main()
