"""Run lm-eval's tasks on language models and write a file: what `vocabshift harness` does.

Owns the handling of interrupted runs and failed tasks: finished tasks are kept next to the output
until the same call has done the rest. `evaluation.harness` runs the tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.evaluation.harness.known_tasks import BORDERS
from vocabshift.progress import Progress
from vocabshift.storage.output import check_free_file, write_whole

__all__ = ["BORDERS", "KEPT", "HarnessRun", "harness_table", "harness_to_file", "known_tasks"]

if TYPE_CHECKING:
    from rich.table import Table

    from vocabshift.evaluation.harness.known_tasks import TaskRequest
    from vocabshift.evaluation.harness.rows import HarnessProgress
    from vocabshift.evaluation.harness.run import HarnessReport
    from vocabshift.results import Results

KEPT = "what is done is kept in {}; the same command goes on from there"
"""What is said, with the file, of rows that are not written yet."""


@dataclass(frozen=True)
class HarnessRun:
    """The results of `harness_to_file`."""

    report: HarnessReport
    kept: Path | None  # the finished rows, if something failed
    border: str = BORDERS[0]

    def to_dict(self) -> dict[str, Any]:
        """Rows, failures, notes, the border's rule with the requests that it changes ("touched",
        of "requests"), and the papers' numbers, as plain JSON values."""
        from vocabshift.evaluation.harness.rows import touched_counts
        from vocabshift.report.model_tables import beside

        return {
            "results": self.report.results.to_dicts(),
            "failures": [
                {"subject": f.subject, "task": f.task, "reason": f.reason}
                for f in self.report.failures
            ],
            "notes": list(self.report.notes),
            "border": self.border,
            "touched": touched_counts(self.report.results),
            "published": [score.to_dict() for score in beside(self.report.results)],
        }


def harness_to_file(
    models: Sequence[str | Path],
    tasks: Sequence[str],
    *,
    shots: int | None = None,
    limit: int | None = None,
    batch_size: int | str = 1,
    data: str | Path | None = None,
    dtype: str = "float32",
    device: str = "auto",
    border: str = BORDERS[0],
    trust_remote_code: bool = False,
    output: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> HarnessRun:
    """Run lm-eval's tasks on models, as `vocabshift.run_harness` does, and optionally write a file.

    `tasks`: names as `known_tasks` lists them; `shots`: examples before a question, by default as
    many as in the papers. `vocabshift.run_harness` documents the other arguments and the errors.

    `output`: the rows as JSON lines, written once nothing has failed. Until then each finished
    task is kept in `OUTPUT.progress`, and the same call resumes from there. FileExistsError if
    either exists already, unless `force`.
    """
    from vocabshift.evaluation.harness.known_tasks import requests_of
    from vocabshift.evaluation.harness.run import run_harness
    from vocabshift.models.folder import check_folder

    for model in models:
        check_folder(model)
    requests = requests_of(tasks, shots)
    settings = {
        "limit": limit,
        "shots": shots,
        "batch_size": batch_size,
        "data": None if data is None else str(data),
        "dtype": dtype,
        "device": device,
        "border": border,
    }
    out, done = _harness_output(models, settings, output, force=force)
    keep = None if done is None else partial(_keep, done)
    try:
        report = run_harness(
            models,
            requests,
            limit=limit,
            batch_size=batch_size,
            data=data,
            dtype=dtype,
            device=device,
            border=border,
            trust_remote_code=trust_remote_code,
            done=done.done if done else None,
            keep=keep,
            progress=progress,
        )
    except KeyboardInterrupt as error:
        if done is not None and done.done:
            error.add_note(KEPT.format(done.file))
        raise
    kept = None
    if out is not None and done is not None and not report.failures:
        write_whole(out, report.results.to_jsonl())
        done.remove()
    elif done is not None and done.done:
        kept = done.file
    return HarnessRun(report, kept, border)


def _keep(done: HarnessProgress, subject: str, request: TaskRequest, rows: Results) -> None:
    done.keep(subject, request.label, rows)


def _harness_output(
    models: Sequence[str | Path],
    settings: dict[str, Any],
    output: str | Path | None,
    *,
    force: bool,
) -> tuple[Path | None, HarnessProgress | None]:
    """The file to write, and the rows that an earlier run left next to it."""
    if output is None:
        return None, None
    from vocabshift.evaluation.harness.rows import HarnessProgress, settings_of

    out = check_free_file(output, force=force, inputs=models)
    file = out.with_name(out.name + ".progress")
    return out, HarnessProgress(file, settings_of(models, **settings), force=force)


def known_tasks() -> dict[str, Any]:
    """The tasks that `harness_to_file` takes and the papers' tables of them, as plain values."""
    from vocabshift.evaluation.harness.known_tasks import FAMILIES, SUITES

    return {
        "tasks": [
            {
                "task": family.name,
                "about": family.about,
                "languages": list(family.tasks),
                "shots": family.shots,
                "metric": family.metric,
                "papers": list(family.papers),
                "local_files": family.local is not None,
            }
            for family in FAMILIES.values()
        ],
        "suites": {name: list(tasks) for name, tasks in SUITES.items()},
    }


def harness_table(run: HarnessRun) -> Table:
    """The terminal output: one row per task and language, next to the papers' numbers."""
    from vocabshift.report.model_tables import beside, task_table

    return task_table(run.report.results, beside(run.report.results))
