"""lm-eval's offline tasks on a model folder, as rows: what `tasks.sh` runs.

    python recipes/smollm2/tasks.py MODEL --name before --data TASKS -o results.jsonl --minutes 60

No examples, the first 200 questions of a task, or 50 where the model writes its answer. A row
"cost" for each task says how many tokens the model would read and which questions they are
(SHA-256), a row "task" what was measured. Tasks run in order of their tokens. What has a row is not
run again.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import vocabshift as vs
from vocabshift.evaluation.harness.data import BuiltTasks, with_files
from vocabshift.evaluation.harness.known_tasks import TASKS, TaskRequest, requests_of
from vocabshift.evaluation.harness.rows import questions_sha256
from vocabshift.evaluation.harness.run import HarnessReport

sys.path.append(str(Path(__file__).parents[1] / "data"))
import record

KEY = ("what", "row")
OFFLINE = ("sib200", "xcopa", "mmlu_indic", "gsm8k", "mgsm")
QUESTIONS = {"multiple_choice": 200, "generate_until": 50}
_NEW_TOKENS = 256  # lm-eval's own, where a task does not say how many are generated
_BATCH = 4


def row_of(what: str, model: str, task: str) -> record.Row:
    """What tells a row from others."""
    return {"what": what, "row": f"{model}, {task}", "model": model, "task": task}


def cost(task: Any, tokenizer: Any) -> record.Row:
    """Questions of a task, and the tokens that a model reads and at most writes to answer them."""
    limit = QUESTIONS[task.OUTPUT_TYPE]
    task.build_all_requests(limit=limit)
    tokens = 0
    texts: dict[tuple[int, str], int] = {}  # of a question, with its tokens
    for request in task.instances:
        text, answer = request.args
        key = (request.doc_id, text)
        if key not in texts:  # read once for all of its answers
            texts[key] = len(tokenizer(text)["input_ids"])
            tokens += texts[key]
        if isinstance(answer, dict):
            tokens += int(answer.get("max_gen_toks", _NEW_TOKENS))
        else:  # the last token of an answer is not read
            tokens += max(0, len(tokenizer(text + answer)["input_ids"]) - texts[key] - 1)
    questions = list(task.eval_docs)[:limit]
    return {"tokens": tokens, "questions": len(questions), "sha256": questions_sha256(questions)}


def add_costs(
    requests: list[TaskRequest], model: str, folder: Path, data: Path, file: Path
) -> None:
    """A row for each task that has none."""
    done = {record.key_of(row, KEY) for row in record.read(file)}
    missing = [
        each
        for each in requests
        if record.key_of(row_of("cost", model, each.label), KEY) not in done
    ]
    if not missing:
        return
    from lm_eval.tasks import TaskManager
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as cache:
        built = BuiltTasks(TaskManager(include_path=str(TASKS)), data, cache)
        for request in missing:
            [task] = built.get(request)["tasks"].values()
            row = row_of("cost", model, request.label) | cost(task, tokenizer)
            record.add(file, [row], key=KEY)
            print(row, flush=True)


def measured(report: HarnessReport, request: TaskRequest) -> record.Row:
    """The papers' metric of a task, half its 95 % interval, and the share of touched requests."""
    assert request.family is not None
    found = {each.metric.rpartition("/")[2]: each for each in report.results}
    # GSM8K's answers are read in two ways; "strict" is for models that saw examples of its form.
    metric = request.family.metric
    metric = metric if metric in found else f"{metric}:flexible-extract"
    value = found[metric]
    assert value.ci_high is not None
    return {
        "metric": metric,
        "value": round(value.value, 4),
        "half": round(value.ci_high - value.value, 4),
        "questions": value.n,
        "touched": round(found["touched"].value, 4) if "touched" in found else 0.0,
    }


def main() -> None:
    """Count, then run the cheapest tasks first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", required=True, help="of the model in the table")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="*", default=[], help="only these, as TASK:LANGUAGE")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="of CPU: none is begun after them"
    )
    parser.add_argument(
        "--dtype", default="float32", help="that the model computes in: 'bfloat16' is faster"
    )
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    requests = with_files(requests_of(OFFLINE, 0), args.data)
    labels = [each.label for each in requests]
    if unknown := [task for task in args.tasks if task not in labels]:
        parser.error(f"no task {unknown[0]!r} in {args.data}; there are {', '.join(labels)}")
    if args.tasks:
        requests = [each for each in requests if each.label in args.tasks]
    add_costs(requests, args.name, args.model, args.data, args.out)
    rows = record.read(args.out)
    done = {record.key_of(row, KEY) for row in rows}
    costs = {
        row["task"]: row for row in rows if (row["what"], row.get("model")) == ("cost", args.name)
    }
    begun = time.process_time()
    for request in sorted(requests, key=lambda each: costs[each.label]["tokens"]):
        row = row_of("task", args.name, request.label)
        if record.key_of(row, KEY) in done:
            continue
        if time.process_time() - begun > 60 * args.minutes:
            print(f"{args.minutes:g} minutes of CPU are over; the same command goes on from here")
            return
        before = time.process_time()
        report = vs.run_harness(
            [args.model],
            [request],
            limit=costs[request.label]["questions"],
            batch_size=_BATCH,
            data=args.data,
            dtype=args.dtype,
        )
        if report.failures:
            sys.exit(f"{request.label}: {report.failures[0].reason}")
        row |= measured(report, request) | {"dtype": args.dtype}
        row["cpu_seconds"] = round(time.process_time() - before)
        record.add(args.out, [row], key=KEY)
        print(row, flush=True)


if __name__ == "__main__":
    main()
