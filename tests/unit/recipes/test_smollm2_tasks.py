"""The offline tasks of SmolLM2: what they cost, which questions, and that a run resumes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vocabshift.results import Result, Results

RESULTS = Path(__file__).resolve().parents[3] / "recipes" / "smollm2" / "results.jsonl"


class Task:
    """A task of lm-eval: its requests are pairs of text and answer, or of text and settings."""

    def __init__(self, requests: list[tuple[int, str, Any]], output_type: str) -> None:
        self.OUTPUT_TYPE = output_type
        self.eval_docs = [{"question": place} for place in range(300)]
        self._requests = requests

    def build_all_requests(self, limit: int) -> None:
        self.instances = [
            SimpleNamespace(doc_id=place, args=(text, answer))
            for place, text, answer in self._requests
            if place < limit
        ]


def letters(text: str) -> dict[str, list[int]]:
    """A tokenizer of single characters."""
    return {"input_ids": [ord(letter) for letter in text]}


@pytest.fixture
def tasks(program) -> Any:
    pytest.importorskip("lm_eval")
    return program("smollm2/tasks.py")


def test_what_a_task_costs(tasks) -> None:
    """A text is read once, and of its answers all but the last token; 200 questions at most."""
    choices = [(0, "ab", "c"), (0, "ab", "d"), (1, "ab", "cd"), (1, "ab", "def"), (250, "x", "y")]
    found = tasks.cost(Task(choices, "multiple_choice"), letters)
    assert (2 + 2 + 1 + 2, 200) == (found["tokens"], found["questions"])
    written = [(0, "abc", {"max_gen_toks": 5}), (1, "ab", {"until": ["."]}), (60, "a", {})]
    found = tasks.cost(Task(written, "generate_until"), letters)
    assert (3 + 5 + 2 + 256, 50) == (found["tokens"], found["questions"])
    other = Task(written, "generate_until")
    other.eval_docs[49] = {"question": "another"}
    assert found["sha256"] != tasks.cost(other, letters)["sha256"]
    other.eval_docs = [*Task(written, "generate_until").eval_docs[:50], {"question": "unasked"}]
    assert found["sha256"] == tasks.cost(other, letters)["sha256"]


def test_the_cheapest_run_first_and_none_twice(tasks, tmp_path: Path, monkeypatch) -> None:
    out = tmp_path / "results.jsonl"
    for name in ("et", "ta"):
        (tmp_path / "xcopa" / name).mkdir(parents=True)
        for split in ("val", "test"):
            (tmp_path / "xcopa" / name / f"{split}.{name}.jsonl").touch()
    own = list(tasks.requests_of(["xcopa:et,ta"], 0))
    monkeypatch.setattr(tasks, "requests_of", lambda *_: own)
    tokens = {"xcopa:et": 90, "xcopa:ta": 20}
    rows = [
        tasks.row_of("cost", "before", name) | {"tokens": n, "questions": 7}
        for name, n in tokens.items()
    ]
    tasks.record.add(out, rows, key=tasks.KEY)
    asked: list[tuple[str, int]] = []

    def run_harness(models: Any, requests: Any, *, limit: int, **_: Any) -> Any:
        asked.append((requests[0].label, limit))
        metrics = [("xcopa/acc", 0.5, 0.6), ("xcopa/touched", 0.25, None)]
        found = [Result("m", "et", name, value, 7, 0.4, high) for name, value, high in metrics]
        return SimpleNamespace(results=Results(found), failures=())

    monkeypatch.setattr(tasks.vs, "run_harness", run_harness)
    words = ["tasks.py", "model", "--name", "before", "--data", str(tmp_path), "-o", str(out)]
    monkeypatch.setattr(sys, "argv", [*words, "--tasks", "xcopa:et"])
    tasks.main()
    monkeypatch.setattr(sys, "argv", words)
    tasks.main()
    assert [("xcopa:et", 7), ("xcopa:ta", 7)] == asked
    found = {row["task"]: row for row in tasks.record.read(out) if row["what"] == "task"}
    assert (0.5, 0.1, 0.25) == tuple(found["xcopa:ta"][key] for key in ("value", "half", "touched"))
    monkeypatch.setattr(sys, "argv", [*words, "--tasks", "xcopa:hi"])
    with pytest.raises(SystemExit):
        tasks.main()


def test_both_models_were_asked_the_same_questions() -> None:
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    asked: dict[str, set[tuple[str, int]]] = {}
    for row in rows:
        if row["what"] == "cost":
            asked.setdefault(row["task"], set()).add((row["sha256"], row["questions"]))
    assert 52 == len(asked)
    assert {1} == {len(own) for own in asked.values()}
    measured = [row for row in rows if row["what"] == "task"]
    assert all(row["questions"] == next(iter(asked[row["task"]]))[1] for row in measured)
    dtypes: dict[str, set[str]] = {}
    for row in measured:
        dtypes.setdefault(row["task"], set()).add(row["dtype"])
    assert {1} == {len(own) for own in dtypes.values()}  # the README says so
