"""Tasks built by lm-eval, with data from local files instead of the Hub where there are any.

Two layouts are known below the folder: that of a family (`known_tasks.LocalFiles`: the data
sets' own release files), and `TASK/SPLIT.jsonl` or `.parquet` for any task of lm-eval, with the
columns of the Hub. A task that needs a program from the Hub is refused. Runs no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vocabshift.evaluation.harness.known_tasks import LocalFiles, TaskRequest
from vocabshift.evaluation.harness.rows import lm_eval_log

_SUFFIXES = {".jsonl": "json", ".json": "json", ".parquet": "parquet"}
_FLORES = "flores200_dataset"
_EXAMPLES = ("fewshot_split", "training_split", "validation_split")  # as lm-eval looks for them


def with_files(requests: Sequence[TaskRequest], folder: Path) -> list[TaskRequest]:
    """The requests, and for a family without named languages those that the files have besides.

    A family all of whose languages are asked for is cut down to the ones whose files are there,
    if any are.
    """
    kept: list[TaskRequest] = []
    for request in requests:
        family = request.family
        if family is None or family.local is None:
            kept.append(request)
            continue
        own = [other for other in requests if other.family is family]
        is_whole = len(own) == len(family.tasks) > 1
        if not is_whole:
            kept.append(request)
        elif request is own[0]:
            labels = [*family.tasks, *family.local.languages]
            named = [
                replace(
                    request,
                    language=label,
                    task=family.tasks.get(label, f"{family.name}_{label}"),
                )
                for label in labels
            ]
            there = [other for other in named if local_config(other, folder) is not None]
            kept += there or own
    return kept


def local_config(request: TaskRequest, folder: Path) -> dict[str, Any] | None:
    """What to change in the task's config, so that it reads files; None where none are there.

    FileNotFoundError where only some of a family's files are.
    """
    local = None if request.family is None else request.family.local
    if local is not None and local.builder == "flores":
        return _flores(folder)
    if local is not None:
        files = {
            split: folder / name.format(request.language) for split, name in local.files.items()
        }
        missing = [path for path in files.values() if not path.is_file()]
        if not missing:
            return _config(local, files)
        if len(missing) < len(files):
            raise FileNotFoundError(f"{request.label} lacks the file {missing[0]}")
    return _any_task(request.task, folder)


def with_known_splits(
    config: Mapping[str, Any], task: Mapping[str, Any], request: TaskRequest
) -> dict[str, Any]:
    """`config` (of `local_config`), splits that it has no file for struck out of the task's.

    `task` is the task's own config. FileNotFoundError where that would change what is asked: no
    file for the questions, or none for the examples.
    """
    files = config.get("dataset_kwargs", {}).get("data_files")
    if files is None:
        return dict(config)
    whole = {**task, **config}
    shots = (whole.get("num_fewshot") or 0) if request.shots is None else request.shots
    examples = next((whole[key] for key in _EXAMPLES if whole.get(key)), None)
    needed = {whole.get("test_split") or whole.get("validation_split")}
    needed |= {examples} if shots else set()
    for split in needed:
        if split not in files:
            raise FileNotFoundError(
                f"{request.label} needs the split {split!r}, and there are files for "
                f"{', '.join(files)} (examples can be left out: --shots 0)"
            )
    missing = {key: None for key in _EXAMPLES if whole.get(key) and whole[key] not in files}
    return {**config, **missing}


def _any_task(task: str, folder: Path) -> dict[str, Any] | None:
    place = folder / task
    if not place.is_dir():
        return None
    files = {path.stem: path for path in sorted(place.iterdir()) if path.suffix in _SUFFIXES}
    builders = {_SUFFIXES[path.suffix] for path in files.values()}
    if len(builders) != 1:
        raise FileNotFoundError(
            f"{place} must hold the splits of {task} as SPLIT.jsonl, or all as SPLIT.parquet"
        )
    return _config(LocalFiles(builders.pop(), {}), files)


def _config(local: LocalFiles, files: Mapping[str, Path]) -> dict[str, Any]:
    paths = {split: str(path.resolve()) for split, path in files.items()}
    return {
        "dataset_path": local.builder,
        "dataset_name": None,
        "dataset_kwargs": {"data_files": paths, **local.options},
        **local.changes,
    }


def _flores(folder: Path) -> dict[str, Any] | None:
    """`tasks/flores/pairs.py` is given what stands in the metadata."""
    place = folder / _FLORES
    return (
        {"metadata": {"version": 1.0, "folder": str(place.resolve())}} if place.is_dir() else None
    )


class BuiltTasks:
    """Tasks built once for all models; a failure is raised again for each."""

    def __init__(self, manager: Any, folder: Path | None, cache: str) -> None:
        self._manager, self._folder, self._cache = manager, folder, cache
        self._built: dict[str, Any] = {}

    def get(self, request: TaskRequest) -> Any:
        """What lm-eval evaluates: {"tasks", "groups", …}."""
        if request.label not in self._built:
            try:
                self._built[request.label] = self._build(request)
            except Exception as error:  # the Hub's, datasets' and lm-eval's own
                self._built[request.label] = error
        built = self._built[request.label]
        if isinstance(built, Exception):
            raise built
        return built

    def _build(self, request: TaskRequest) -> Any:
        _refuse_code(self._manager.task_index, request.task)
        config = self._from_files(request)
        # lm-eval changes a registered task's config only for the members of a group.
        changed = {"group": "vocabshift", "task": [{"task": request.task, **(config or {})}]}
        with lm_eval_log():
            loaded = self._manager.load([request.task if config is None else changed])
            if config is not None:
                loaded = {"tasks": loaded["tasks"], "groups": {}, "group_map": {}}
        for task in loaded["tasks"].values():
            if request.shots is not None:
                task.set_config(key="num_fewshot", value=request.shots)
            elif task.get_config("num_fewshot") is None:
                task.set_config(key="num_fewshot", value=0)
        return loaded

    def _from_files(self, request: TaskRequest) -> dict[str, Any] | None:
        """What to change in the task's config, where there are files for it."""
        found = None if self._folder is None else local_config(request, self._folder)
        if found is None:
            return None
        registered = self._manager.task_index[request.task]
        if registered.kind.name != "TASK":
            raise ValueError(
                f"{request.task} is no single task, so that {request.task}/ in {self._folder} "
                "cannot be its data; name its members, each with a folder of its own"
            )
        config = with_known_splits(found, registered.cfg or {}, request)
        if "dataset_kwargs" in config:  # nothing is left on this disk
            config["dataset_kwargs"] |= {"cache_dir": self._cache}
        return config


def _refuse_code(index: Mapping[str, Any], task: str) -> None:
    """ValueError for a metric that is a program on the Hub."""
    config = getattr(index[task], "cfg", None) or {}
    for metric in config.get("metric_list") or ():
        if metric.get("hf_evaluate"):
            raise ValueError(
                f"{task} needs the metric {metric['metric']!r} as a program from the Hub, which is "
                "not run here; choose another task, or run lm-eval itself"
            )
