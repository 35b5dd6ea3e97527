"""Checkpoints of a run: weights, moments and position, kept so that it goes on exactly.

Owns when a checkpoint is due, which are kept, and what makes another run of it: `run.json` says
what the weights depend on, and a run that differs in it is refused. Every checkpoint is whole or
not there (`vocabshift.checkpoints`). The random state is no part of one: every step begins from a
seed of its own. Knows nothing of models.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.checkpoints import Checkpoints
from vocabshift.cpt.written_weights import disk_errors
from vocabshift.provenance import config_hash

if TYPE_CHECKING:
    import torch

    from vocabshift.cpt.state import Tensors

RUN = "run.json"
_STEPS = "steps"
_NAME = re.compile(r"step-[0-9]{9}")
_WEIGHTS, _MOMENTS = "weights.safetensors", "moments.safetensors"


@dataclass(frozen=True, eq=False)
class SavedStep:
    """A checkpoint that was found."""

    info: Mapping[str, Any]  # as it was given to `save`
    weights: dict[str, torch.Tensor]
    moments: dict[str, torch.Tensor]


class StepCheckpoints:
    """The checkpoints of one run in `folder`, which is made when it is needed."""

    def __init__(
        self,
        folder: Path,
        facts: Mapping[str, Any],
        *,
        every_steps: int | None = None,
        every_seconds: float | None = 900.0,
        keep: int = 2,
    ) -> None:
        """`facts`: plain JSON values that the weights depend on.

        ValueError where `folder` holds checkpoints of a run with other facts, names the first
        that differs. `every_seconds` counts from the end of the last checkpoint; None for either:
        not by that measure.
        """
        if keep < 1:
            raise ValueError(f"{keep} checkpoints to keep; at least 1 is needed")
        self.folder = folder
        self._facts = json.loads(json.dumps(facts))
        self._every_steps, self._every_seconds, self._keep = every_steps, every_seconds, keep
        self._last = time.monotonic()
        _refuse_another(folder, self._facts)
        self._kept = Checkpoints(folder / _STEPS, config_hash(self._facts))

    def is_due(self, n_steps: int) -> bool:
        """Whether to save after so many steps of the run."""
        if self._every_steps is not None and n_steps % self._every_steps == 0:
            return True
        seconds = self._every_seconds
        return seconds is not None and time.monotonic() - self._last >= seconds

    def save(
        self, n_steps: int, weights: Tensors, moments: Tensors, info: Mapping[str, Any]
    ) -> None:
        """Keep the state after `n_steps` steps of the run; the oldest beyond `keep` go."""
        from safetensors.torch import save_file

        def write(folder: Path) -> None:
            folder.mkdir()
            with disk_errors(folder):
                save_file(weights, folder / _WEIGHTS)
                save_file(moments, folder / _MOMENTS)

        file = self.folder / RUN
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".partial")
            partial.write_text(json.dumps(self._facts, indent=1) + "\n", encoding="utf-8")
            partial.replace(file)
        self._kept.save(f"step-{n_steps:09}", write, info)
        for name in self._names()[: -self._keep]:
            self._kept.drop(name)
        self._last = time.monotonic()

    def newest(self) -> SavedStep | None:
        """The last checkpoint that is whole; None where there is none."""
        from safetensors.torch import load_file

        for name in reversed(self._names()):
            found = self._kept.load(name)
            if found is not None:
                weights, moments = (load_file(found.path / file) for file in (_WEIGHTS, _MOMENTS))
                return SavedStep(found.info, weights, moments)
        return None

    def _names(self) -> list[str]:
        steps = self.folder / _STEPS
        entries = steps.iterdir() if steps.is_dir() else ()
        return sorted(entry.name for entry in entries if _NAME.fullmatch(entry.name))


def _refuse_another(folder: Path, facts: Mapping[str, Any]) -> None:
    file = folder / RUN
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except ValueError:
        before = {}
    was, now = dict(_flat(before)), dict(_flat(facts))
    differing = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    if differing:
        shown = ", ".join(
            f"{key} = {now.get(key)!r} (it was {was.get(key)!r})" for key in differing[:3]
        )
        raise ValueError(
            f"{folder} holds the checkpoints of a run that differs in {shown}; go on with what it "
            "had, or start afresh with --no-resume"
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
