"""Figures so far, kept beside the output: the same command goes on where a run has stopped.

Owns the file `OUTPUT.progress`: a line with the settings, then a line for each task that a model
has done. Of other settings, or of a model that has changed, it is not replaced without being told
to: it may be the work of hours. Knows nothing of lm-eval.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vocabshift.results import Result, Results


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
