"""Model folders of a run of `cpt` before its end: saved at evaluations, or made of a checkpoint.

Owns `models/step-…`, which any verb opens as a model, lm-eval's tasks on them, and how a checkpoint
becomes such a folder. Every process calls `Judge`; the first one writes and runs the tasks. Tasks
run on the folder, as `vocabshift harness` would run them, so the model in training is not touched;
the random state is put back.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.adapters import add_to, is_part
from vocabshift.cpt.checkpoints import (
    RUN,
    STEP_NAME,
    STEPS,
    WEIGHTS,
    disk_errors,
    read_facts,
    save_model,
    write_model,
)
from vocabshift.cpt.loop import kept_random_state
from vocabshift.cpt.state import restore_weights
from vocabshift.models.contents import CHAT_TEMPLATES, LEGAL
from vocabshift.models.folder import require_model, write_old_rope_keys, write_version
from vocabshift.models.shards import lacking_layers
from vocabshift.storage.checkpoints import read_phase
from vocabshift.storage.outcome import config_hash, outcome
from vocabshift.storage.output import CHECKPOINTS, atomic_folder
from vocabshift.workflows.pretraining_inputs import model_key

if TYPE_CHECKING:
    from accelerate import Accelerator

    from vocabshift.cpt.run_config import CptConfig
    from vocabshift.cpt.steps import Record
    from vocabshift.models.adapter import Adapter
    from vocabshift.workflows.pretraining_inputs import Inputs

MODELS = "models"
"""Folder of the saved models, below the output."""

TRAINING = "training"
"""Folder of a run's checkpoints."""

ADAPTER = "adapter"
"""Folder of the adapter that the last phase trained, below the output."""

_PARTS = ("matching_loss", "next_token_loss")
_BESIDE = ("*.json", "*.jinja", "*.model", "*.py", "*.txt", *LEGAL, f"{CHAT_TEMPLATES}/*.jinja")
_WRITTEN = ("config.json", "generation_config.json", "*.index.json", "vocabshift.json")


class Judge:
    """What is done at each evaluation, beside the score on held-out text."""

    def __init__(
        self, config: CptConfig, inputs: Inputs, accelerator: Accelerator, model: Any, work: Path
    ) -> None:
        """`work`: the folder in which `MODELS` is made; it is the same for all processes."""
        self._config, self._inputs, self._work = config, inputs, work
        self._accelerator, self._model = accelerator, model

    def after(self, run_steps: int) -> dict[str, Any]:
        """Save the model and run the tasks, if asked; return what the log's record says of them.

        `run_steps`: steps of the run so far. Before the first step a task that fails raises
        ValueError; later it is among the record's `task_failures`, and training goes on.
        """
        config = self._config
        if not (config.save_models or config.evaluate_tasks):
            return {}
        name = f"step-{run_steps:09}"
        # A name with a dot in front is removed when a run begins.
        folder = self._work / MODELS / name if config.save_models else self._work / f".{name}"
        # Bars of transformers and lm-eval would tear the run's own, and fill a log.
        with redirect_stderr(StringIO()):
            found = self._found(folder, name, is_first=run_steps == 0)
        self._accelerator.wait_for_everyone()
        return found

    def _found(self, folder: Path, name: str, *, is_first: bool) -> dict[str, Any]:
        config = self._config
        self._write(folder)
        found: dict[str, Any] = {"model": f"{MODELS}/{name}"} if config.save_models else {}
        if self._accelerator.is_main_process:
            if config.save_models:
                self._drop(name)
            if config.evaluate_tasks:
                found |= self._run_tasks(folder, is_first=is_first)
            if not config.save_models:
                shutil.rmtree(folder)
        return found

    def _write(self, folder: Path) -> None:
        is_main = self._accelerator.is_main_process
        with atomic_folder(folder, force=True) if is_main else nullcontext(folder) as partial:
            write_model(
                self._model,
                partial,
                self._accelerator,
                dtype=self._inputs.dtype,
                source=self._inputs.folder,
                is_kept=True,
            )
            if is_main:
                copy_beside(self._inputs.folder, partial)

    def _drop(self, newest: str) -> None:
        """Remove models beyond `keep_models`, and those of steps that a resumed run does again."""
        folders = sorted(each for each in (self._work / MODELS).iterdir() if each.is_dir())
        kept = [each for each in folders if STEP_NAME.fullmatch(each.name) and each.name <= newest]
        if self._config.keep_models is not None:
            kept = kept[-self._config.keep_models :]
        for each in folders:
            if each not in kept:
                shutil.rmtree(each)

    def _run_tasks(self, folder: Path, *, is_first: bool) -> dict[str, Any]:
        from vocabshift.evaluation.harness.run import run_harness

        config = self._config
        with kept_random_state(self._accelerator.device):
            report = run_harness(
                [folder],
                config.evaluate_tasks,
                limit=config.evaluate_tasks_limit,
                batch_size=config.evaluate_tasks_batch_size,
                data=config.evaluate_tasks_data,
                device=str(self._accelerator.device),
            )
        failures = [{"task": each.task, "reason": each.reason} for each in report.failures]
        if failures and is_first:
            raise ValueError("evaluate_tasks: {task} fails: {reason}".format_map(failures[0]))
        rows = [dict(row) for row in report.results.to_dicts()]
        for row in rows:
            del row["subject"]
        return {"tasks": rows} | ({"task_failures": failures} if failures else {})


def task_values(record: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a record's tasks by "TASK/METRIC/LANGUAGE"."""
    return {f"{row['metric']}/{row['language']}": row["value"] for row in record.get("tasks") or ()}


def further_summary(records: Iterable[Record]) -> dict[str, Any]:
    """Tasks at the first and the last evaluation, and the parts of the loss, if the run had any."""
    tasks: list[dict[str, float]] = []
    matched: list[Record] = []
    for record in records:
        if record.get("tasks"):
            tasks.append(task_values(record))
        if "matching_loss" in record:
            matched.append(record)
    found: dict[str, Any] = {}
    if tasks:
        found["tasks"] = [
            {"task": name, "before": before, "after": tasks[-1].get(name)}
            for name, before in tasks[0].items()
        ]
    if matched:
        found |= {f"first_{key}": matched[0][key] for key in _PARTS}
        found |= {key: matched[-1][key] for key in _PARTS}
        shares = [record["matched_share"] for record in matched]
        found["matched_share"] = sum(shares) / len(shares)
    return found


def copy_beside(source: Path, folder: Path) -> None:
    """Copy the tokenizer and the other small files of a model into the folder of its weights."""
    skipped = {file for pattern in _WRITTEN for file in source.glob(pattern)}
    for file in {file for pattern in _BESIDE for file in source.glob(pattern)} - skipped:
        if file.is_file():
            copy = folder / file.relative_to(source)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, copy)
    if (folder / "config.json").exists():  # an adapter has none
        write_old_rope_keys(folder / "config.json")
        write_version(folder / "config.json")  # transformers 4 has written its own


def write_adapter(
    trained: Sequence[Adapter], config: CptConfig, inputs: Inputs, out: Path
) -> dict[str, str]:
    """Write the last adapter in PEFT's form, with the tokenizer of its base model beside it.

    Nothing is written if base and adapter are not the trained model. For the summary: the folder.
    """
    if not config.has_adapter:
        return {}
    name, local = "." if config.adapter_only else ADAPTER, Path(config.model)
    base = str(local.resolve()) if local.exists() else config.model
    (out / name).mkdir(exist_ok=True)
    with disk_errors(out / name):
        about = {**trained[-1].config, "base_model_name_or_path": base}
        replace(trained[-1], config=about).save(out / name)
    copy_beside(inputs.folder, out / name)
    return {"adapter": name}


# A checkpoint as a model folder.


def export_facts(inputs: Inputs, training: Path) -> dict[str, Any]:
    """What `export_checkpoint` needs to know, and the command that calls it, as plain JSON."""
    return {
        "command": export_command(training),
        "model": str(inputs.folder.resolve()),
        "dtype": inputs.dtype,
    }


def export_command(checkpoint: Path) -> str:
    """The command that makes a checkpoint a model folder."""
    return shlex.join(["vocabshift", "cpt", "--export", str(checkpoint), "-o", "DIR"])


def has_checkpoint(work: Path) -> bool:
    """Whether a run has saved a step in `work`."""
    return _newest(work / TRAINING / STEPS) is not None


def export_checkpoint(
    checkpoint: str | Path, out: str | Path, *, force: bool = False
) -> dict[str, Any]:
    """Write a checkpoint of `cpt` as a model folder: weights, config, tokenizer.

    `checkpoint`: OUT.partial for its newest step, or the folder `step-…` of one. The folder has the
    weights of that step, and the dtype that the run's output would have. Raises FileNotFoundError
    where there is no checkpoint, ValueError for a damaged one and where the model that the run
    began with has changed, FileExistsError if `out` exists, without `force`.
    """
    from safetensors.torch import load_file

    from vocabshift.models.load import load_model

    step = _step_at(Path(checkpoint))
    training = step.parent.parent
    about, facts = read_facts(training)
    saved = read_phase(step, config_hash(facts))
    if saved is None:
        raise ValueError(
            f"{step} is damaged, or {training / RUN}, which says what run it is of; name another "
            "checkpoint"
        )
    model_folder = require_model(about["model"])
    changed = [name for name, value in model_key(model_folder).items() if facts.get(name) != value]
    if changed:
        raise ValueError(
            f"{model_folder} has changed since the run began ({', '.join(changed)}), and the "
            "checkpoint holds only what was trained; put back the model that the run began with"
        )
    with outcome("cpt-export", out, inputs=[step, model_folder], force=force) as output:
        model = load_model(model_folder, dtype="float32")
        _restore(model, load_file(saved.path / WEIGHTS), facts["phases"][saved.info["phase"]])
        save_model(model, output.folder, about["dtype"], model_folder)
        copy_beside(model_folder, output.folder)
        at = {name: saved.info[name] for name in ("phase", "run_steps", "run_bytes")}
        at["left_out"] = lacking_layers(output.folder, model_folder)
        return output.record({"model": about["model"], "checkpoint": step.name}, at)


def _restore(model: Any, saved: dict[str, Any], phase: Mapping[str, Any]) -> None:
    """Put what a checkpoint holds into the model that the run began with, adapters merged."""
    named = dict(model.named_parameters())
    restore_weights({name: named[name] for name in named if name in saved}, saved)
    parts = {name: saved[name] for name in saved if is_part(name)}
    if parts:
        scaling = phase["lora_alpha"] / phase["lora_rank"]
        add_to({name: value.data for name, value in named.items()}, parts, model, scaling)


def _step_at(place: Path) -> Path:
    """The folder of a step: `place` itself, or the newest one below a folder of the run."""
    if STEP_NAME.fullmatch(place.name) and place.is_dir():
        return place
    for above in ("", STEPS, f"{TRAINING}/{STEPS}", f"{CHECKPOINTS}/{TRAINING}/{STEPS}"):
        newest = _newest(place / above)
        if newest is not None:
            return newest
    raise FileNotFoundError(
        f"{place} holds no checkpoint of cpt; name OUT.partial, or a folder step-… in it (a run "
        "that has ended left its model in OUT and no checkpoint)"
    )


def _newest(steps: Path) -> Path | None:
    entries = steps.iterdir() if steps.is_dir() else ()
    return max((each for each in entries if STEP_NAME.fullmatch(each.name)), default=None)
