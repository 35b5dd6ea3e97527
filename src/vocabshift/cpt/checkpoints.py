"""Checkpoints of a run: weights, moments and position, so that it resumes exactly.

Owns when a checkpoint is due and which are kept. `run.json` records what the weights depend on; a
run with other values is refused. A checkpoint is either complete or absent
(`vocabshift.storage.checkpoints`). It holds no random state, because every step starts from its own
seed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.adapters import add_to, is_part
from vocabshift.cpt.state import Tensors, names_of, plain_name, whole_weights
from vocabshift.models.shards import FLOATS, stored_dtypes
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.storage.outcome import config_hash

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator


_NUMBER = re.compile(r"\(os error ([0-9]+)\)")


@contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Turn a SafetensorError caused by the operating system into an OSError within the block.

    A full disk is then always an OSError, whichever library writes.
    """
    import safetensors

    try:
        yield
    except safetensors.SafetensorError as error:
        found = _NUMBER.search(str(error))
        if found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), str(place)) from error


# The checkpoints of a run.

RUN, EXPORT = "run.json", "export.json"
STEPS = "steps"
STEP_NAME = re.compile(r"step-[0-9]{9}")
WEIGHTS, _MOMENTS = "weights.safetensors", "moments.safetensors"


@dataclass(frozen=True, eq=False)
class SavedStep:
    """A checkpoint found on disk."""

    info: Mapping[str, Any]  # as passed to `save`
    weights: dict[str, torch.Tensor]
    moments: dict[str, torch.Tensor]


class StepCheckpoints:
    """The checkpoints of one run in `folder`, which is created when first needed."""

    def __init__(
        self,
        folder: Path,
        facts: Mapping[str, Any],
        *,
        export: Mapping[str, Any] | None = None,
        every_steps: int | None = None,
        every_seconds: float | None = 900.0,
        keep: int = 2,
    ) -> None:
        """`facts`: plain JSON values that the weights depend on; `export`: others, for readers.

        Raises ValueError, naming the first difference, if `folder` holds checkpoints of a run with
        other facts. `every_seconds` counts from the end of the last checkpoint. None disables
        either interval.
        """
        if keep < 1:
            raise ValueError(f"{keep} checkpoints to keep; at least 1 is needed")
        self.folder = folder
        self._facts, self._export = json.loads(json.dumps(facts)), dict(export or {})
        self._every_steps, self._every_seconds, self._keep = every_steps, every_seconds, keep
        self._last = time.monotonic()
        _refuse_another(folder, self._facts)
        self._kept = Checkpoints(folder / STEPS, config_hash(self._facts))

    def is_due(self, n_steps: int) -> bool:
        """Whether to save after `n_steps` steps of the run."""
        if self._every_steps is not None and n_steps % self._every_steps == 0:
            return True
        seconds = self._every_seconds
        return seconds is not None and time.monotonic() - self._last >= seconds

    def save(
        self, n_steps: int, weights: Tensors, moments: Tensors, info: Mapping[str, Any]
    ) -> None:
        """Save the state after `n_steps` steps of the run; delete the oldest beyond `keep`."""
        from safetensors.torch import save_file

        def write(folder: Path) -> None:
            folder.mkdir()
            with disk_errors(folder):
                save_file(weights, folder / WEIGHTS)
                save_file(moments, folder / _MOMENTS)

        self.folder.mkdir(parents=True, exist_ok=True)
        for name, value in ((RUN, self._facts), (EXPORT, self._export)):
            file = self.folder / name
            # A run that is resumed may have another dtype of the output, or its model elsewhere.
            if name == EXPORT or not file.exists():
                partial = file.with_suffix(".partial")
                partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
                partial.replace(file)
        self._kept.save(f"step-{n_steps:09}", write, info)
        for name in self._names()[: -self._keep]:
            self._kept.drop(name)
        self._last = time.monotonic()

    def newest(self) -> SavedStep | None:
        """The newest complete checkpoint, or None."""
        from safetensors.torch import load_file

        for name in reversed(self._names()):
            found = self._kept.load(name)
            if found is not None:
                weights, moments = (load_file(found.path / file) for file in (WEIGHTS, _MOMENTS))
                return SavedStep(found.info, weights, moments)
        return None

    def _names(self) -> list[str]:
        steps = self.folder / STEPS
        entries = steps.iterdir() if steps.is_dir() else ()
        return sorted(entry.name for entry in entries if STEP_NAME.fullmatch(entry.name))


def read_facts(training: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `export.json` and `run.json` in a folder of checkpoints say.

    FileNotFoundError if one is missing; ValueError for one that is no object, and for an export
    without a model or a dtype.
    """
    about, facts = (_read(training / name) for name in (EXPORT, RUN))
    is_known = about.get("dtype") in {AUTO, *FLOATS.values()}
    if not isinstance(about.get("model"), str) or not is_known:
        raise ValueError(f"{training / EXPORT} is damaged: a model and its dtype are needed")
    return about, facts


def _read(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{file.parent} holds no {file.name}: it is no folder of checkpoints, or one of an "
            "older run; resume that run once, which writes it"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{file} is damaged: an object is needed")
    return value


def _refuse_another(folder: Path, facts: Mapping[str, Any]) -> None:
    file = folder / RUN
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (ValueError, RecursionError):
        before = {}
    was, now = dict(_flat(before)), dict(_flat(facts))
    differing = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    if differing:
        shown = ", ".join(
            f"{key} = {now.get(key)!r} (it was {was.get(key)!r})" for key in differing[:3]
        )
        raise ValueError(
            f"{folder} holds the checkpoints of a run that differs in {shown}; continue with what "
            "it had, or start afresh with --no-resume"
        )


def _flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """("phases.0.learning_rate", value) pairs of nested tables and lists of tables."""
    if isinstance(value, Mapping):
        items = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        items = [(str(key), each) for key, each in enumerate(value)]
    else:
        return [(name, value)]
    pairs = [_flat(each, f"{name}.{key}" if name else key) for key, each in items]
    return [pair for part in pairs for pair in part]


# The trained model as files: full weights in the requested dtype.

MAX_SHARD_SIZE = "5GB"

AUTO = "auto"
"""In place of a dtype: that of each tensor in the model before."""


def write_model(
    model: Any,
    folder: Path,
    accelerator: Accelerator,
    *,
    dtype: str,
    source: Path,
    is_kept: bool = False,
) -> None:
    """Write the weights as `dtype` ("float32", "bfloat16"…, `AUTO`); all processes call it.

    `source`: the folder of the model before. `is_kept`: a copy on the CPU is written, and training
    can go on. Otherwise the model itself has that dtype afterwards, unless it is sharded. Adapters
    in the model are merged in what is written.
    """
    is_main = accelerator.is_main_process
    if is_kept or accelerator.is_fsdp2:
        weights = whole_weights(names_of(model, model.parameters()), on_main=is_main)
        if is_main:
            parts = {name: weights.pop(name) for name in list(weights) if is_part(name)}
            add_to(weights, parts, model)
            model = _undivided(model, weights)
    if is_main:
        save_model(model, folder, dtype, source)
    accelerator.wait_for_everyone()


def save_model(model: Any, folder: Path, dtype: str, source: Path) -> None:
    """Write a model that is whole as `dtype`, which it has afterwards.

    `AUTO`: each tensor as `source` stores it, or as most numbers there if it has another name.
    """
    import torch

    others: Mapping[str, str] = {}
    if dtype == AUTO:
        dtype, others = stored_dtypes(source)
    with disk_errors(folder):
        for name, value in (*model.named_parameters(), *model.named_buffers()):
            if value.is_floating_point():
                value.data = value.data.to(getattr(torch, others.get(name, dtype)))
        model.save_pretrained(folder, max_shard_size=MAX_SHARD_SIZE)


def _undivided(model: Any, weights: Tensors) -> Any:
    """A model of the same kind with these weights."""
    import torch

    with torch.device("meta"):
        plain = type(model)(deepcopy(model.config))
    persistent = {
        name: value.to("cpu")
        for name, value in model.state_dict().items()
        if plain_name(name) not in weights and not hasattr(value, "full_tensor")
    }
    plain.load_state_dict({**persistent, **weights}, strict=False, assign=True)
    plain.tie_weights()
    plain.generation_config = model.generation_config
    return plain
