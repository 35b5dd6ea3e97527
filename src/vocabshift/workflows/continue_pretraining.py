"""Continued pre-training of a model folder: what `vocabshift cpt` does.

Joins packing, the training loop and the score on held-out text. Owns the order of the steps and
the output folder, which appears whole or not at all. Unfinished work stays in `OUT.partial`; the
same call resumes it. Every process of `accelerate launch` makes the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.checkpoints import StepCheckpoints, write_model
from vocabshift.cpt.loop import check_model, pretrain
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.cpt.processes import check_launch, load_accelerate, new_accelerator
from vocabshift.cpt.run_config import CptConfig
from vocabshift.cpt.steps import LOG, Record, RunLog, evaluation_record, step_record, summary
from vocabshift.models.shards import lacking_layers
from vocabshift.progress import Progress
from vocabshift.storage.outcome import Outcome, config_hash, outcome
from vocabshift.storage.output import CHECKPOINTS, check_free
from vocabshift.workflows.pretraining_inputs import Inputs, check_same_text, data_key, open_inputs
from vocabshift.workflows.pretraining_models import (
    MODELS,
    TRAINING,
    Judge,
    copy_beside,
    export_checkpoint,
    export_command,
    export_facts,
    further_summary,
    has_checkpoint,
    task_values,
    write_adapter,
)
from vocabshift.workflows.teach import open_teacher

if TYPE_CHECKING:
    from accelerate import Accelerator

    from vocabshift.cpt.steps import Evaluation, Step

__all__ = ["CptConfig", "continue_pretraining", "export_checkpoint"]


def continue_pretraining(
    config: CptConfig | Mapping[str, object],
    *,
    control: bool = False,
    force: bool = False,
    resume: bool = True,
    threads: int = 1,
    progress: Progress | None = None,
    on_record: Callable[[Record], None] | None = None,
) -> dict[str, Any] | None:
    """Continue training a model folder, and write it as another; return a summary of the run.

    `config`: a CptConfig, or the keys of the TOML file that `docs/cpt.md` shows. `control`: train
    the model with its old tokenizer (the key `control`) on the same bytes instead, into
    OUT-control. A run that was stopped resumes exactly where it was, unless `resume` is off;
    Ctrl-C and SIGTERM end it with a saved state and KeyboardInterrupt. `threads` are for packing.
    `progress` is called during packing, `on_record` with every line of `log.jsonl`. With several
    processes, only the first returns the summary and calls the two; the others return None.

    ValueError (VocabMismatchError, CorpusError), OSError or ImportError before the first step for
    inputs that cannot be trained on; FileExistsError if the output exists, without `force`.
    """
    load_accelerate()
    given = config if isinstance(config, CptConfig) else CptConfig.from_mapping(config)
    own = given.as_control() if control else given
    inputs = open_inputs(own)
    if control:
        check_same_text(given, inputs.data)
    out = check_free(own.out, force=force, inputs=inputs.paths)
    options: dict[str, Any] = {"cpu": own.cpu, "mixed_precision": own.loop.mixed_precision}
    work = out.with_name(out.name + ".partial") / CHECKPOINTS
    if own.trackers:
        options |= {"log_with": list(own.trackers), "project_dir": str(work / "trackers")}
    with new_accelerator(**options) as accelerator:
        check_launch(accelerator)
        model = _model(own, inputs)
        with _shared_folder(accelerator, out, force=force, resume=resume) as output:
            partial = output.folder
            checkpoints = _checkpoints(own, inputs, accelerator, partial)
            data = _packed(inputs, accelerator, partial, threads, progress)
            if control:
                check_same_text(given, data)  # also when it was packed just now
            teacher = open_teacher(inputs.teacher, accelerator.device)
            judge = Judge(own, inputs, accelerator, model, partial / CHECKPOINTS)
            trained: list[Any] = []  # adapters
            with _reported(own, accelerator, partial, on_record, judge) as reports:
                pretrain(
                    model,
                    inputs.tokenizer,
                    data,
                    phases=own.phases,
                    config=own.loop,
                    new_ids=inputs.new_ids,
                    accelerator=accelerator,
                    checkpoints=checkpoints,
                    on_step=reports.step,
                    evaluate=_scorer(own, inputs),
                    evaluate_bytes=own.evaluate_bytes,
                    on_evaluation=reports.evaluation,
                    teacher=teacher,
                    on_adapter=trained.append,
                )
            figures = summary(reports.log.records()) | further_summary(reports.log.records())
            if not own.adapter_only:
                write_model(model, partial, accelerator, dtype=inputs.dtype, source=inputs.folder)
            if accelerator.is_main_process:
                figures |= write_adapter(trained, own, inputs, partial)
                figures["left_out"] = lacking_layers(partial, inputs.folder)
                _write_beside(own, inputs, output, figures)
        is_main = accelerator.is_main_process
        accelerator.end_training()
    if teacher is not None:
        figures["unmatched_documents"] = len(teacher.unmatched)
    return {"out": str(out), **figures} if is_main else None


def _model(config: CptConfig, inputs: Inputs) -> Any:
    """Load the model in float32, the dtype of training; refuse one that cannot be trained."""
    from vocabshift.models.load import load_model

    model = load_model(inputs.folder, dtype="float32")
    check_model(model, inputs.tokenizer.row_count, config.loop, config.phases, inputs.new_ids)
    return model


def _scorer(config: CptConfig, inputs: Inputs) -> Callable[[Any], dict[str, float]] | None:
    """Model -> bits per byte of the held-out text by language, in windows of sequence length.

    Without such text, a function to the empty table if anything else is done at an evaluation.
    """
    from vocabshift.evaluation.scoring.score import score

    held_out, length = inputs.held_out, config.loop.sequence_length
    if held_out is None:
        return (lambda _: {}) if config.save_models or config.evaluate_tasks else None

    def bits(model: Any) -> dict[str, float]:
        rows = score(model, inputs.tokenizer, held_out, context=max(length, 3))  # BOS, seen, scored
        return {row.language: row.value for row in rows}

    return bits


@contextmanager
def _shared_folder(
    accelerator: Accelerator, out: Path, *, force: bool, resume: bool
) -> Iterator[Outcome]:
    """The partial folder for all processes; the first one creates and renames it."""
    if accelerator.is_main_process:
        with outcome("cpt", out, force=force, keep_checkpoints=True, resume=resume) as output:
            accelerator.wait_for_everyone()
            with _export_named(output.folder):
                yield output
    else:
        accelerator.wait_for_everyone()
        yield Outcome("cpt", out, out.with_name(out.name + ".partial"))
    accelerator.wait_for_everyone()


@contextmanager
def _export_named(partial: Path) -> Iterator[None]:
    """Add the command that exports a checkpoint to an error that leaves one behind."""
    try:
        yield
    except BaseException as error:
        if has_checkpoint(partial / CHECKPOINTS):
            error.add_note(f"as a model folder until then: {export_command(partial)}")
        raise


def _checkpoints(
    config: CptConfig, inputs: Inputs, accelerator: Accelerator, partial: Path
) -> StepCheckpoints:
    facts = {
        **inputs.facts(),
        "held_out": inputs.held_out and data_key(inputs.held_out),  # before and after are compared
        "phases": [phase.mathematics() for phase in config.phases],
        **config.loop.mathematics(),
        "mixed_precision": accelerator.mixed_precision,
    }
    return StepCheckpoints(
        folder := partial / CHECKPOINTS / TRAINING,
        facts,
        export=export_facts(inputs, folder),
        every_steps=config.checkpoint_steps,
        every_seconds=60 * config.checkpoint_minutes if config.checkpoint_minutes else None,
        keep=config.keep_checkpoints,
    )


def _packed(
    inputs: Inputs,
    accelerator: Accelerator,
    partial: Path,
    threads: int,
    progress: Progress | None,
) -> PackedIds:
    """The packed text; it is made once if missing, and kept for a run that resumes."""
    if isinstance(inputs.data, PackedIds):
        return inputs.data
    key = config_hash({"data": data_key(inputs.data), **inputs.facts()})
    folder = partial / CHECKPOINTS / f"packed-{key}"
    if accelerator.is_main_process and not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        pack_corpus(
            inputs.tokenizer,
            inputs.data,
            folder,
            PackOptions(),
            threads=threads,
            progress=progress,
        )
    accelerator.wait_for_everyone()
    return PackedIds.open(folder, checksums=False)


@contextmanager
def _reported(
    config: CptConfig,
    accelerator: Accelerator,
    partial: Path,
    on_record: Callable[[Record], None] | None,
    judge: Judge,
) -> Iterator[_RunReport]:
    """The receiver of step reports; trackers flush when the block ends."""
    try:
        yield _RunReport(config, accelerator, partial, on_record, judge)
    finally:
        for tracker in getattr(accelerator, "trackers", ()):
            tracker.finish()


class _RunReport:
    """Forwards steps and evaluations to the log, the trackers and the caller."""

    def __init__(
        self,
        config: CptConfig,
        accelerator: Accelerator,
        partial: Path,
        on_record: Callable[[Record], None] | None,
        judge: Judge,
    ) -> None:
        self.log = RunLog(partial / CHECKPOINTS / LOG)
        self._accelerator, self._on_record, self._judge = accelerator, on_record, judge
        self._has_trackers = bool(config.trackers)
        if config.trackers:
            accelerator.init_trackers("vocabshift-cpt", config={"model": config.model})

    def step(self, step: Step) -> None:
        """Report a finished step."""
        record = step_record(step)
        names = (
            "loss",
            "matching_loss",
            "next_token_loss",
            "learning_rate",
            "gradient_norm",
            "tokens_per_second",
            "mfu",
        )
        self._tell(record, {name: record[name] for name in names if name in record})

    def evaluation(self, evaluation: Evaluation) -> None:
        """Report the score on the held-out text, the saved model and the tasks on it."""
        record = evaluation_record(evaluation) | self._judge.after(evaluation.run_steps)
        values = {f"bits_per_byte/{name}": value for name, value in evaluation.values.items()}
        self._tell(record, values | task_values(record))

    def _tell(self, record: Record, values: Mapping[str, float]) -> None:
        if self._has_trackers:  # by bytes of text seen: comparable between tokenizers
            self._accelerator.log(dict(values), step=record["run_bytes"])
        if self._accelerator.is_main_process:
            self.log.add(record)
            if self._on_record:
                self._on_record(record)


def _write_beside(
    config: CptConfig, inputs: Inputs, output: Outcome, figures: Mapping[str, Any]
) -> None:
    """Write the unchanged tokenizer, the log, the saved models and the provenance."""
    copy_beside(inputs.folder, output.folder)
    work = output.folder / CHECKPOINTS
    (work / LOG).rename(output.folder / LOG)
    for name in ("trackers", MODELS):
        if (work / name).exists():
            (work / name).rename(output.folder / name)
    said = {key: value for key, value in figures.items() if "second" not in key}
    asked = {key: value for key, value in config.to_dict().items() if key != "out"}
    output.record(asked, said, corpus_fingerprint=data_key(inputs.data))
