"""lm-eval on several checkpoints: the papers' tasks and any other, from the Hub or from files.

Owns how a task is built, run and turned into rows. A failed task is reported, and the others still
run. `known_tasks` has the tasks, `tasks/` and lm-eval the prompts. Values are lm-eval's own, equal
to those of `lm_eval.simple_evaluate` for the same task, examples and seeds, but for answers whose
first token spans the border to the context (`border`). No code of a data set is run.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.evaluation.harness.data import BuiltTasks, with_files
from vocabshift.evaluation.harness.known_tasks import (
    BORDERS,
    FAMILIES,
    SUITES,
    TASKS,
    TaskRequest,
    requests_of,
)
from vocabshift.evaluation.harness.rows import (
    asked,
    lm_eval_log,
    reason_of,
    rows_of,
    touched_note,
    touched_row,
)
from vocabshift.evaluation.lines.subject import checksum_if_readable, subject_names
from vocabshift.models.load import check_model, load_causal_model, load_tokenizer
from vocabshift.progress import Progress, in_phase
from vocabshift.results import Results

_SEED = 1234  # lm-eval's own, of examples and of numpy and torch
_BOOTSTRAPS = 100_000  # lm-eval's own, for metrics whose error has no formula

Keep = Callable[[str, TaskRequest, Results], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that gave no figure for a subject."""

    subject: str
    task: str
    reason: str


@dataclass(frozen=True, slots=True)
class HarnessReport:
    """What was measured, what was not, and what to know of the figures."""

    results: Results
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]


def run_harness(
    models: Sequence[str | Path],
    tasks: Sequence[str | TaskRequest],
    *,
    limit: int | None = None,
    batch_size: int | str = 1,
    data: str | Path | None = None,
    dtype: str = "float32",
    device: str = "auto",
    border: str = BORDERS[0],
    trust_remote_code: bool = False,
    done: Mapping[tuple[str, str], Results] | None = None,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> HarnessReport:
    """Every task on every model folder or Hub name, one model at a time.

    `tasks`: names ("sib200", "sib200:hi,ta", "ist-8", any task of lm-eval), or what `requests_of`
    makes of them. Rows: metric "TASK/METRIC" (":FILTER" where lm-eval reads answers in several
    ways), n = questions, interval of 1.96 standard errors as lm-eval gives them. `limit`: only the
    first questions. `batch_size`: a number, or "auto". `data`: a folder with the tasks' files, used
    where it has them. `border`: how an answer is scored where a token spans the border between
    context and answer ("heal", "split" or "lm-eval"; see docs/judging-models.md); where any is, a
    row "TASK/touched" has the share of requests. `done`: rows by (subject, task label) that are
    there already; `keep` is called with what is new. `models`: folders or Hub names, loaded in
    `dtype` on `device` ("auto": a GPU where there is one), with code of their own only if
    `trust_remote_code`. `progress` is called with the subject as phase, tasks done and all tasks;
    and with subject and task, answers done and all answers of the task.
    Raises ValueError for an unknown task,
    FileNotFoundError where `data` is no folder, ImportError without lm-eval; whatever else goes
    wrong with one model or task is among the failures.
    """
    if border not in BORDERS:
        raise ValueError(f"border is {border!r}; it must be one of {', '.join(BORDERS)}")
    names = [task for task in tasks if isinstance(task, str)]
    requests = [*requests_of(names), *(task for task in tasks if not isinstance(task, str))]
    manager = _task_manager(is_own=_are_own(requests))
    _check_names(requests, manager.task_index)
    folder = None if data is None else Path(data)
    if folder is not None and not folder.is_dir():
        raise FileNotFoundError(f"{data} is no folder; --data names one with the tasks' files")
    requests = requests if folder is None else with_files(requests, folder)
    rows, failures, notes = Results(), list[Failure](), list[str]()
    known = dict(done or {})
    with tempfile.TemporaryDirectory(prefix="vocabshift-tasks-") as cache:
        built = BuiltTasks(manager, folder, cache)
        for subject, source in zip(subject_names(models), models, strict=True):
            lm: Any = None
            for number, request in enumerate(requests):
                if progress is not None:
                    progress(subject, number, len(requests))
                key = (subject, request.label)
                try:
                    if key not in known:
                        task = built.get(request)
                        if lm is None:
                            lm = _language_model(
                                source, batch_size, dtype, device, border, trust_remote_code
                            )
                        lm.report = in_phase(progress, f"{subject}: {request.label}")
                        known[key], said = _evaluate(lm, task, subject, request, limit)
                        notes += said
                        if keep is not None:
                            keep(subject, request, known[key])
                    rows += known[key]
                    notes += touched_note(known[key], subject, request, border)
                except Exception as error:  # one task or model must not lose what others gave
                    failures.append(Failure(subject, request.label, reason_of(error)))
            del lm  # before the next one needs the room
    return HarnessReport(rows, tuple(failures), tuple(dict.fromkeys(notes)))


def _are_own(requests: Sequence[TaskRequest]) -> bool:
    """Whether lm-eval's own folder is not needed: reading its thousands of files takes seconds."""
    return all(list(TASKS.glob(f"*/{request.task}.yaml")) for request in requests)


@cache
def _task_manager(*, is_own: bool) -> Any:
    try:
        import datasets
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise ImportError(
            "harness needs lm-eval; install it with: pip install 'vocabshift[eval]'"
        ) from error
    if int(datasets.__version__.partition(".")[0]) < 4:
        raise ImportError(  # earlier ones run the scripts of data sets
            f"datasets {datasets.__version__} is too old for harness: pip install 'datasets>=4'"
        )
    with lm_eval_log():
        return TaskManager(include_path=str(TASKS), include_defaults=not is_own)


def _check_names(requests: Sequence[TaskRequest], index: Mapping[str, Any]) -> None:
    for request in requests:
        if request.task not in index:
            near = get_close_matches(request.name, [*FAMILIES, *SUITES, *index], n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise ValueError(
                f"unknown task {request.name!r}{hint} (see: vocabshift harness --list)"
            )


def _language_model(  # noqa: PLR0917 (one call)
    source: str | Path,
    batch_size: int | str,
    dtype: str,
    device: str,
    border: str,
    trust_remote_code: bool,
) -> Any:
    from vocabshift.evaluation.harness.border import BorderLM

    config = check_model(source, trust_remote_code=trust_remote_code).get_text_config()
    tokenizer = load_tokenizer(source, trust_remote_code=trust_remote_code)
    # lm-eval begins empty prompts with the BOS (or EOS) and pads with the EOS: where the
    # tokenizer names none, the model's config does.
    for role in ("bos", "eos"):
        token_id = getattr(config, f"{role}_token_id", None)
        token_id = token_id[0] if isinstance(token_id, list) else token_id
        if getattr(tokenizer, f"{role}_token_id") is None and token_id is not None:
            setattr(tokenizer, f"{role}_token", tokenizer.convert_ids_to_tokens(token_id))
    if tokenizer.eos_token_id is None:
        raise ValueError(
            "neither the tokenizer nor config.json names an EOS token, which lm-eval needs; add "
            '"eos_token" to tokenizer_config.json'
        )
    model = load_causal_model(
        source, dtype=dtype, device=device, trust_remote_code=trust_remote_code
    )
    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        raise ValueError(
            f"the tokenizer of {source} has {len(tokenizer)} tokens and the model "
            f"{model.get_input_embeddings().weight.shape[0]} rows"
        )
    with lm_eval_log(), _accelerate_as_it_was():
        lm = BorderLM(
            border=border,
            pretrained=model,
            tokenizer=tokenizer,
            backend="causal",
            batch_size=batch_size,
        )
    lm.tokenizer_sha256 = checksum_if_readable(source)
    return lm


@contextmanager
def _accelerate_as_it_was() -> Iterator[None]:
    """lm-eval asks accelerate for the number of processes, which then keeps device and precision
    for the life of this one, and training in it could choose no other."""
    from accelerate.state import AcceleratorState, PartialState

    is_first = not (AcceleratorState._shared_state or PartialState._shared_state)
    try:
        yield
    finally:
        if is_first and not PartialState().use_distributed:
            AcceleratorState._reset_state(reset_partial_state=True)


def _evaluate(
    lm: Any, loaded: Any, subject: str, request: TaskRequest, limit: int | None
) -> tuple[Results, list[str]]:
    """Rows of one task (of a group: of the whole), and what to know of them."""
    import torch
    from lm_eval.evaluator import evaluate

    for task in loaded["tasks"].values():  # for each model anew, so that all see one prompt
        task.set_fewshot_seed(seed=_SEED)
    random.seed(0)  # as simple_evaluate does
    np.random.seed(_SEED)
    torch.manual_seed(_SEED)
    lm.reset_counts()
    with lm_eval_log() as said:
        found = evaluate(lm, loaded, limit=limit, log_samples=False, bootstrap_iters=_BOOTSTRAPS)
    cut = sum("truncat" in line.lower() for line in said)
    notes = []
    if cut:
        notes.append(
            f"{subject}, {request.label}: prompts are longer than the model's {lm.max_length} "
            f"positions and were cut on the left ({cut} times)"
        )
    texts = asked(loaded["tasks"], request, limit)
    rows = rows_of(found, subject, request, texts)
    rows += touched_row(lm.counts, subject, request, texts)
    return Results(replace(row, tokenizer_sha256=lm.tokenizer_sha256) for row in rows), notes
