"""The parts of `superwords.sh` that are no verb: its texts, and what it measured, as rows.

python recipes/smollm2/superwords.py texts en.txt -o OUT
python recipes/smollm2/superwords.py borders MODEL --data TASKS --text en.txt -o results.jsonl
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

import numpy as np

import vocabshift as vs
from vocabshift.evaluation.harness.known_tasks import BORDERS, requests_of

sys.path.append(str(Path(__file__).parents[1] / "data"))
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import record
from healing import choices, interval_of_difference

KEY = ("what", "row")
LEARNED, TRAINED = 3_000_000, 500_000  # bytes of English for the tokenizer; of these, for the model
QUESTIONS = 1_500
TASKS = {"mmlu_indic:en": 200, "sib200:en": 100}  # questions
MADE = "next three words"
LINES = 300  # of the text, from which questions are made


def question(words: list[str], draw: random.Random) -> str:
    """A question on a line, in the form of `mmlu_indic`: which word comes next?"""
    at = draw.randrange(5, len(words) - 4)
    options = [words[at], *draw.sample(words[:at] + words[at + 1 :], 3)]
    draw.shuffle(options)
    listed = "\n".join(f"{letter}. {word}" for letter, word in zip("ABCD", options, strict=True))
    return (
        f"Question: Which word comes after: {' '.join(words[:at])}\n{listed}\n"
        f"Answer: {'ABCD'[options.index(words[at])]}"
    )


def texts(source: Path, out: Path) -> None:
    """English to learn and to train on, and questions made of other lines of it."""
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    draw = random.Random(0)
    draw.shuffle(lines)
    at, size = 0, 0
    files: dict[str, list[str]] = {"en": [], "train": [], "questions": []}
    while size < LEARNED:
        files["en"].append(lines[at])
        files["train"] += [lines[at]] if size < TRAINED else []
        size += len(lines[at].encode())
        at += 1
    others = (line.split() for line in lines[at:])
    long = (words for words in others if 12 <= len(words) <= 40)
    files["questions"] = [question(next(long), draw) for _ in range(QUESTIONS)]
    for name, documents in files.items():
        rows = (json.dumps({"text": text}, ensure_ascii=False) for text in documents)
        (out / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def trained(model: Path, file: Path) -> None:
    """A row for each evaluation during the training, the first of them before it."""
    log = record.read(model / "log.jsonl")
    rows: list[record.Row] = [
        {
            "what": "trained",
            "row": each["run_steps"],
            "bytes": each["run_bytes"],
            "bits_per_byte": {
                label: round(bits, 5) for label, bits in each["bits_per_byte"].items()
            },
        }
        for each in log
        if each["kind"] == "evaluation"
    ]
    record.add(file, rows, key=KEY)


def row_of(task: str, border: str) -> record.Row:
    """What tells a row from others."""
    return {"what": "border", "row": f"{task}, {border}", "task": task, "border": border}


def borders(model: Path, data: Path, text: Path, file: Path) -> None:
    """A row for each task and border, and for questions made of the text."""
    done = {record.key_of(row, KEY) for row in record.read(file)}
    for name, limit in TASKS.items():
        for border in BORDERS:
            row: record.Row = row_of(name, border)
            if record.key_of(row, KEY) in done:
                continue
            report = vs.run_harness(
                [model], requests_of([name], 0), limit=limit, data=data, border=border, batch_size=8
            )
            if report.failures:  # lm-eval stops where no token of an answer is left
                row |= {"failure": report.failures[0].reason}
            else:
                found = {each.metric.rpartition("/")[2]: each for each in report.results}
                row |= {"accuracy": round(found["acc"].value, 4), "questions": found["acc"].n}
                row["touched"] = round(found["touched"].value, 4) if "touched" in found else 0.0
            record.add(file, [row], key=KEY)
            print(row, flush=True)
    if record.key_of(row_of(MADE, BORDERS[0]), KEY) in done:
        return
    touched, chosen = choices(str(model), text.read_text(encoding="utf-8").splitlines()[:LINES])
    for border, is_right in chosen.items():
        row = row_of(MADE, border) | {"questions": len(touched)}
        row |= {"accuracy": round(float(np.mean(is_right)), 4)}
        row["touched"] = round(float(np.mean(touched)), 4)
        if border != BORDERS[0]:
            low, high = interval_of_difference(chosen[BORDERS[0]], is_right)
            row |= {"heal_better_low": round(low, 4), "heal_better_high": round(high, 4)}
        record.add(file, [row], key=KEY)
        print(row, flush=True)


def main() -> None:
    """One of the two parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("texts", "borders"))
    parser.add_argument("source", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    args = parser.parse_args()
    if args.part == "texts":
        texts(args.source, args.out)
    else:
        trained(args.source, args.out)
        borders(args.source, args.data, args.text, args.out)


if __name__ == "__main__":
    main()
