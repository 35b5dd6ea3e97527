"""The training loop: `pretrain` trains a model on packed text in phases, on `accelerate`.

Owns the set-up of a run and the checks before its first step; `run` does the steps. The same loop
serves a CPU, one GPU, several processes (DDP) and a sharded model (FSDP2). All randomness comes
from `LoopConfig.seed`, so two runs on a CPU with the same number of threads produce the same
weights. Progress and the learning rate follow bytes of text, not steps, so that runs with different
tokenizers are comparable.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.chunks import MatchedRows, Teacher
from vocabshift.cpt.config import LoopConfig, Phase
from vocabshift.cpt.objectives import special_ids
from vocabshift.cpt.optimize import learning_rate_share
from vocabshift.cpt.packed_ids import MappedRows, PackedIds
from vocabshift.cpt.packing import PlacedDocuments, RowCopies, document_ends, draw, pack_ids
from vocabshift.cpt.phases import check_phases
from vocabshift.cpt.processes import StopSignals, accelerator_for, check_launch, load_accelerate
from vocabshift.cpt.steps import Evaluation, Hooks, Rows, Step
from vocabshift.cpt.teacher_folder import check_teacher
from vocabshift.errors import VocabMismatchError
from vocabshift.models.load import positions_of
from vocabshift.models.windows import warn_of_chat_start

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from vocabshift.cpt.checkpoints import StepCheckpoints
    from vocabshift.models.adapter import Adapter
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
    from vocabshift.tokenizer.formats.load import TokenizerLike

__all__ = [
    "Evaluation",
    "LoopConfig",
    "Phase",
    "Step",
    "check_model",
    "learning_rate_share",
    "pretrain",
]


def pretrain(
    model: PreTrainedModel,
    tokenizer: TokenizerLike,
    corpus: Corpus | PackedIds | Iterable[str],
    *,
    phases: Sequence[Phase],
    config: LoopConfig | None = None,
    on_step: Callable[[Step], None] | None = None,
    new_ids: Sequence[int] = (),
    accelerator: Accelerator | None = None,
    checkpoints: StepCheckpoints | None = None,
    evaluate: Callable[[PreTrainedModel], Mapping[str, float]] | None = None,
    evaluate_bytes: int | None = None,
    on_evaluation: Callable[[Evaluation], None] | None = None,
    teacher: Teacher | None = None,
    on_adapter: Callable[[Adapter], None] | None = None,
) -> list[Step]:
    """Train `model` IN PLACE on `corpus` through `phases`, and return its steps.

    `model`: a causal or masked one of transformers. `tokenizer`: of BPE, Unigram or WordPiece.

    Documents are shuffled, joined with the EOS (and BOS, where it is another id) of
    `model.config`, and cut to `config.sequence_length`. The text of a phase depends only on budget,
    corpus and seed, never on the tokenizer. The optimizer is AdamW, with a linear warm-up and then
    the schedule of `config`. Every phase starts with a fresh optimizer and a new order of
    documents. `corpus` may be PackedIds made with this tokenizer; the steps are the same.
    `new_ids`: the ids whose rows the phases "new-rows" and "lora" train. The adapters of "lora" are
    merged into the model when the phase ends; `on_adapter` receives them before that.

    `accelerator` sets device, precision and processes; None: the device that the model is on. All
    processes call this function with the same arguments; the gradient of a step covers all their
    rows. `checkpoints`: the run resumes exactly from the newest one and returns the steps from
    there on. Ctrl-C and SIGTERM finish the step, save, and raise KeyboardInterrupt. `evaluate` is
    called with the model (which it must not change) before the first step, after the last, and
    after every `evaluate_bytes` of text. `on_step` receives every step, `on_evaluation` every
    evaluation. `teacher`: for the objective "likelihood-matching", what it has read of `corpus`
    (`StoredTeacher`, `LiveTeacher`).

    Raises VocabMismatchError for ids beyond the model's rows, CorpusError if there is no text, and
    ValueError for a sequence longer than the model's positions, for a phase that trains nothing, or
    if a loss is not finite or spikes (`optimize.SpikeWatch`) or memory runs out: the weights are
    then those before that step.
    """
    load_accelerate()
    from vocabshift.cpt.run import Run
    from vocabshift.cpt.training_module import prepared_layers
    from vocabshift.tokenizer.formats.load import open_tokenizer

    config = config or LoopConfig()
    ours = open_tokenizer(tokenizer)
    separator = check_model(model, ours.row_count, config, phases, new_ids)
    source = _source(corpus, ours)
    check_teacher(config, teacher, _document_bytes(source))
    hooks = Hooks(
        on_step=on_step,
        evaluate=evaluate,
        evaluate_bytes=evaluate_bytes,
        on_evaluation=on_evaluation,
        on_adapter=on_adapter,
    )
    steps: list[Step] = []
    with ExitStack() as stack:
        if accelerator is None:
            accelerator = stack.enter_context(accelerator_for(model, config.mixed_precision))
        else:
            _place(model, accelerator)
        check_launch(accelerator)
        if accelerator.is_main_process:
            warn_of_chat_start(model, ours)
        with accelerator.autocast():  # flash attention takes only half precision
            special = special_ids(model, ours, separator, config)
        stack.enter_context(_kept_state(model))
        stack.enter_context(prepared_layers(model, config))
        signals = StopSignals()
        stack.enter_context(signals if checkpoints is not None else nullcontext())
        stack.enter_context(_memory_advice(config))
        run = Run(
            model,
            accelerator,
            config,
            phases,
            special=special,
            new_ids=new_ids,
            hooks=hooks,
            checkpoints=checkpoints,
            signals=signals,
        )
        for index in range(run.first_phase, len(phases)):
            rows, documents = _packed(
                source,
                ours,
                phases[index].n_bytes,
                seed=config.seed + index,
                separator=separator,
                config=config,
            )
            if teacher is not None:
                rows = MatchedRows(rows, documents, config.sequence_length, ours, teacher, config)
            steps += run.phase(index, rows)
    return steps


def check_model(
    model: Any,
    n_rows: int,
    config: LoopConfig,
    phases: Sequence[Phase],
    new_ids: Sequence[int] = (),
) -> tuple[int, ...]:
    """Refuse what cannot be trained; return the ids placed between documents.

    `n_rows`: the rows that the tokenizer needs.
    """
    check_phases(model, phases, new_ids)
    rows = model.get_input_embeddings().weight.shape[0]
    if n_rows > rows:
        raise VocabMismatchError(
            f"the tokenizer needs {n_rows} embedding rows and the model has {rows}; "
            "transfer the model to this tokenizer first"
        )
    settings = model.config.get_text_config()
    if (positions := positions_of(model)) is not None and config.sequence_length > positions:
        raise ValueError(
            f"sequence_length is {config.sequence_length} and the model has {positions} positions; "
            "choose a shorter one"
        )
    eos = settings.eos_token_id
    eos = eos[0] if isinstance(eos, list) else eos
    if eos is None:
        raise ValueError(
            "the model's config has no eos_token_id, which must stand between documents; set one"
        )
    bos = settings.bos_token_id
    separator = (eos,) if bos is None or bos == eos else (eos, bos)
    if not all(0 <= token_id < rows for token_id in separator):
        raise VocabMismatchError(
            f"the model's config names the special ids {separator} but the model has {rows} rows; "
            "set bos_token_id and eos_token_id to ids of its tokenizer"
        )
    return separator


def _source(
    corpus: Corpus | PackedIds | Iterable[str], tokenizer: AnyTokenizer
) -> PackedIds | list[str]:
    if isinstance(corpus, PackedIds):
        corpus.require(tokenizer)
        return corpus
    if hasattr(corpus, "texts"):
        return [text for _, text in corpus.texts()]
    return list(corpus)


def _document_bytes(source: PackedIds | list[str]) -> NDArray[np.int64]:
    if isinstance(source, PackedIds):
        return source.document_bytes
    return np.array([len(text.encode("utf-8")) for text in source], dtype=np.int64)


def _packed(
    source: PackedIds | list[str],
    tokenizer: AnyTokenizer,
    n_bytes: int,
    *,
    seed: int,
    separator: tuple[int, ...],
    config: LoopConfig,
) -> tuple[Rows, PlacedDocuments]:
    """Packed rows of the documents within a phase's budget, and where these are in them."""
    sizes, length = _document_bytes(source), config.sequence_length
    chosen = draw(sizes, -(-n_bytes // config.duplication), seed=seed)
    if isinstance(source, PackedIds):
        mapped = MappedRows(source, chosen, separator=separator, length=length)
        return _copied(mapped, config), mapped.documents
    ids, offsets = tokenizer.encode_batch([source[index] for index in chosen.tolist()])
    documents = PlacedDocuments(
        indexes=chosen,
        n_bytes=sizes[chosen],
        ends=document_ends(np.diff(offsets), len(separator)),
        n_between=len(separator),
        ids=lambda number: ids[offsets[number] : offsets[number + 1]],
    )
    packed = pack_ids(ids, offsets, documents.n_bytes, separator=separator, length=length)
    return _copied(packed, config), documents


def _copied(rows: Rows, config: LoopConfig) -> Rows:
    return RowCopies(rows, config.duplication) if config.duplication > 1 else rows


def _place(model: Any, accelerator: Accelerator) -> None:
    """Move the model to its device; FSDP2 moves it itself, after sharding."""
    if not accelerator.is_fsdp2:
        model.to(accelerator.device)


@contextmanager
def _kept_state(model: Any) -> Iterator[None]:
    """Turn dropout on; afterwards restore the model's mode and torch's random state."""
    import torch

    device = model.get_input_embeddings().weight.device
    was_training = model.training
    model.train()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        model.train(was_training)


@contextmanager
def kept_random_state(device: Any) -> Iterator[None]:
    """Put back the random states of Python, numpy and torch after the block, which may seed them.

    `device`: that of the model in training, as torch has it.
    """
    import torch

    plain, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(of_numpy)


@contextmanager
def _memory_advice(config: LoopConfig) -> Iterator[None]:
    """Turn an out-of-memory error into a ValueError that says what to lower."""
    import torch

    try:
        yield
    except RuntimeError as error:
        of_gpu = isinstance(error, torch.cuda.OutOfMemoryError)
        if not (of_gpu or "can't allocate memory" in str(error)):  # no class of its own on a CPU
            raise
        rows = config.micro_batch_size or f"{config.step_sequences}, the whole step"
        or_set = "" if config.activation_checkpointing else " or set activation_checkpointing"
        raise ValueError(
            f"memory does not suffice ({str(error).splitlines()[0]}): lower micro_batch_size (it "
            f"is {rows}; the gradient stays the same){or_set}, shorten sequence_length, or "
            "divide the model over more GPUs with FSDP2"
        ) from error
