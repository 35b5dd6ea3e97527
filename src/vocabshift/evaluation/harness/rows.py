"""lm-eval's results as rows of Results, its errors as one line each, and the progress file.

Owns the names of metrics, the intervals, the checksums of questions, lm-eval's warnings, and the
file `OUTPUT.progress`: a line with the settings, then a line for each finished task of a model,
from which the same command resumes. A file with other settings, or for a model that has changed, is
only replaced with `--force`, because it may hold hours of work. Knows nothing of how tasks are run;
does not import lm-eval.
"""

from __future__ import annotations

import json
import logging
import math
import os
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vocabshift.evaluation.harness.known_tasks import TaskRequest
from vocabshift.results import Result, Results, sha256_of

TOUCHED = "touched"
"""The metric of requests in which a token spans the border of context and answer."""

_EFFECTS = {
    "heal": "these are scored, or generated, from the last token boundary before it",
    "split": "context and answer of these are encoded apart; generation's prompts are unchanged",
    "lm-eval": "lm-eval loses the first words of such answers, or all of them (see --border)",
}


def questions_sha256(questions: Iterable[Any]) -> str:
    """SHA-256 of questions as the task's data has them, a line of JSON each, keys in order."""
    return sha256_of(
        json.dumps(question, ensure_ascii=False, sort_keys=True, default=str)
        for question in questions
    )


def asked(tasks: Mapping[str, Any], request: TaskRequest, limit: int | None) -> dict[str, str]:
    """`questions_sha256` of what lm-eval asks: by task, and of all tasks under the request's own.

    `tasks`: lm-eval's, by name; `limit`: questions of each, the first ones.
    """
    questions = {name: list(islice(task.eval_docs, limit)) for name, task in tasks.items()}
    return {
        request.task: questions_sha256(chain.from_iterable(questions.values())),
        **{name: questions_sha256(own) for name, own in questions.items()},
    }


def rows_of(
    found: Mapping[str, Any],
    subject: str,
    request: TaskRequest,
    texts: Mapping[str, str],
) -> Results:
    """Rows of one task: of a group the whole where lm-eval aggregates it, else its members.

    `found` is what `lm_eval.evaluate` returns, `texts` what `asked` does. ValueError where a figure
    is none.
    """
    measured = found["results"].get(request.task)
    whole = {request.task: measured} if measured and _metrics(measured) else found["results"]
    rows = []
    for task, values in whole.items():
        name = request.name if task == request.task else task
        if task in found["n-samples"]:
            n = found["n-samples"][task]["effective"]
        else:  # a group: all that was asked
            n = sum(sizes["effective"] for sizes in found["n-samples"].values())
        metrics = _metrics(values)
        several = {metric for metric, _ in metrics if sum(m == metric for m, _ in metrics) > 1}
        for metric, filtered in metrics:
            value = float(values[f"{metric},{filtered}"])
            if not math.isfinite(value):
                raise ValueError(f"{metric} of {task} is {value}: no figure can be given")
            error = values.get(f"{metric}_stderr,{filtered}")
            is_known = isinstance(error, int | float) and math.isfinite(error)
            half = 1.96 * error if is_known else None
            label = f"{name}/{metric}" + (f":{filtered}" if metric in several else "")
            low, high = (None, None) if half is None else (value - half, value + half)
            row = Result(subject, request.language, label, value, n, low, high)
            rows.append(replace(row, text_sha256=texts.get(task)))
    if not rows:
        raise ValueError(f"{request.task} gave no figure")
    return Results(rows)


def touched_row(
    counts: Any, subject: str, request: TaskRequest, texts: Mapping[str, str]
) -> Results:
    """The share of requests that `border.BorderCounts` calls touched; no row where none is.

    `texts`: what `asked` returns.
    """
    if not counts.touched:
        return Results()
    share = counts.touched / counts.requests
    row = Result(subject, request.language, f"{request.name}/{TOUCHED}", share, counts.requests)
    return Results([replace(row, text_sha256=texts[request.task])])


def touched_counts(results: Results) -> list[dict[str, Any]]:
    """Plain values for each subject and task that has touched requests."""
    return [
        {
            "subject": row.subject,
            "task": row.metric.removesuffix(f"/{TOUCHED}"),
            "language": row.language,
            "requests": row.n,
            "touched": round(row.value * row.n),
        }
        for row in results
        if row.metric.endswith(f"/{TOUCHED}")
    ]


def touched_note(rows: Results, subject: str, request: TaskRequest, border: str) -> list[str]:
    """What to know of a task's figures if a token spans the border in some requests."""
    return [
        f"{subject}, {request.label}: a token spans the border of context and answer in "
        f"{round(row.value * row.n)} of {row.n} requests; " + _EFFECTS[border]
        for row in rows
        if row.metric == f"{request.name}/{TOUCHED}"
    ]


def _metrics(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(metric, filter) of lm-eval's keys "metric,filter"."""
    pairs = [
        key.split(",", 1)
        for key, value in values.items()
        if isinstance(value, int | float) and "," in key
    ]
    return [(metric, filtered) for metric, filtered in pairs if not metric.endswith("_stderr")]


_DATA = "--data DIR (evaluate_tasks_data of cpt)"


def reason_of(error: Exception) -> str:
    """One line that a person can act on, from whatever lm-eval, datasets or the Hub raised."""
    text = " ".join(str(error).split()) or _where(error)
    if "script" in text and "no longer supported" in text:
        return (
            f"the data set needs code of its own, which is not run ({text[:120]}); give its files "
            f"with {_DATA}"
        )
    if type(error).__name__ in (
        *("ConnectionError", "OfflineModeIsEnabled", "LocalEntryNotFoundError", "ConnectError"),
        *("DatasetNotFoundError", "GatedRepoError"),
    ):
        return f"the data cannot be fetched ({text[:200]}); log in, or give files with {_DATA}"
    if error.__cause__ is not None and error.__cause__.args:  # datasets: which row of which file
        cause = " ".join(str(error.__cause__).split())
        text = text if cause[:60] in text else f"{text}: {cause}"
    is_ours = isinstance(error, ValueError | OSError | ImportError)
    return (text if is_ours else f"{type(error).__name__}: {text}")[:400]


def _where(error: Exception) -> str:
    """The line that raised an error without words, such as lm-eval's bare assertions: that one on
    `max_length` means that an answer is longer than the model has positions."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    return f"{frames[-1].line} (line {frames[-1].lineno} of {Path(frames[-1].filename).name})"


class HarnessProgress:
    """The rows of each subject and task that are there already."""

    def __init__(self, file: Path, settings: Mapping[str, Any], *, force: bool = False) -> None:
        """FileExistsError for a file of other settings, unless `force` is on."""
        self.file, self._force = file, force
        self._head = json.dumps({"settings": settings}, sort_keys=True)
        self.done: dict[tuple[str, str], Results] = {}
        self._read()

    def keep(self, subject: str, task: str, rows: Results) -> None:
        """Write a line, whole, before the next task begins."""
        line = {"subject": subject, "task": task, "rows": rows.to_dicts()}
        is_new = not self.file.exists()
        with self.file.open("a", encoding="utf-8") as stream:
            if is_new:
                stream.write(self._head + "\n")
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.done[subject, task] = rows

    def remove(self) -> None:
        """The run is done."""
        self.file.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            lines = self.file.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return
        except UnicodeDecodeError:
            lines = [""]
        if lines[0] != self._head:
            if not self._force:
                raise FileExistsError(
                    f"{self.file} is of a run with other settings or of a model that has changed "
                    "since; name another output, or pass --force to begin anew"
                )
            self.file.unlink()
            return
        whole = [self._head]
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                rows = Results(Result(**row) for row in entry["rows"])
                self.done[entry["subject"], entry["task"]] = rows
            except (ValueError, TypeError, KeyError):  # the last line of a run that was killed
                continue
            whole.append(line)
        self.file.write_text("\n".join(whole) + "\n", encoding="utf-8")


def settings_of(models: Sequence[str | Path], **options: Any) -> dict[str, Any]:
    """What figures depend on: the models (a folder with the time of its newest file), options."""
    found = {}
    for model in models:
        path = Path(model)
        files = [file.stat().st_mtime_ns for file in path.iterdir()] if path.is_dir() else []
        found[str(path.resolve() if files else model)] = max(files, default=None)
    return {"models": found, **options}


@contextmanager
def lm_eval_log() -> Iterator[list[str]]:
    """What lm-eval warns of meanwhile, kept from the terminal."""
    logger = logging.getLogger("lm_eval")
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    before = logger.propagate, list(logger.handlers)
    logger.propagate, logger.handlers = False, [handler]
    try:
        yield said
    finally:
        logger.propagate, logger.handlers = before
