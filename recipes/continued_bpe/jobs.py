"""Many small measurements: one JSON file each, made once, by several processes.

Owns the files and the processes. What is measured is a function of a job; a job names its file.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar


class Job(Protocol):
    """Anything that can be pickled and names its file."""

    @property
    def file(self) -> Path:
        """Where its figures go."""


J = TypeVar("J", bound=Job)


def run_all(
    measure: Callable[[J], dict[str, Any]], jobs: Sequence[J], processes: int
) -> list[dict[str, Any]]:
    """The figures of all jobs, in their order; a file that is there is not made again."""
    todo = [job for job in jobs if not job.file.exists()]
    for job in todo:
        job.file.parent.mkdir(parents=True, exist_ok=True)
    work = partial(_write, measure)
    with multiprocessing.get_context("spawn").Pool(max(1, min(processes, len(todo)))) as pool:
        for i, name in enumerate(pool.imap_unordered(work, todo), 1):
            print(f"{i}/{len(todo)} {name}", file=sys.stderr)
    return [json.loads(job.file.read_text(encoding="utf-8")) for job in jobs]


def _write(measure: Callable[[J], dict[str, Any]], job: J) -> str:
    """Measure, and write the file whole or not at all."""
    figures = measure(job)
    partial_file = job.file.with_suffix(".partial")
    partial_file.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    partial_file.rename(job.file)
    return job.file.name
