"""Token Distillation: rows of new tokens learned from the model's own reading of the old ones.

Dobler, Elliott & de Melo 2025 (arXiv 2505.20133). The model reads a snippet in old tokens (the
teacher) and in new ones (the student); where both readings end at the same byte, the student's
hidden state is to equal the teacher's. Rows of the head learn by next-token loss. Only rows of new
tokens are trained. This file joins the parts to a transfer: `snippets` finds the text, `student`
holds the model and the optimizer, `lesson` runs the steps. See
docs/algorithms/token-distillation.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vocabshift.models.load import (
    check_causal,
    lack_of_memory,
    load_model,
    positions_of,
    torch_device,
)
from vocabshift.models.tables import Matrices, find_matrices, output_embeddings
from vocabshift.models.token_loss import probing
from vocabshift.progress import Progress, in_phase, peak_rss_bytes
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.surgery.lesson import Lesson
from vocabshift.surgery.options import AUTO, DISTILL, TransferOptions
from vocabshift.surgery.rows import InitContext, Learned
from vocabshift.surgery.snippets import Around, find_snippets
from vocabshift.surgery.student import check_teacher, frozen, make_student
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer


def load_to_run(source: str | Path, dtype: Any, init: str) -> Any:
    """The model; ValueError says that it is loaded because `init` runs it, if that is so."""
    try:
        return load_model(source, dtype=dtype)
    except ValueError as error:
        if init not in (AUTO, DISTILL):
            raise
        raise ValueError(f"init {init!r} runs the model, which others do not: {error}") from error


@dataclass(frozen=True, eq=False)
class Exchange:
    """One exchange of tokenizers, as it was planned."""

    old: AnyTokenizer
    new: AnyTokenizer
    made: InitContext  # its rows are the start
    n_rows: int
    move: Callable[[int], int | None]  # old id -> new id, None for a token that is gone
    give_ids: Callable[[Any], None]  # to the configs of a copy of the model


def learn_rows_of_saved(
    folder: Path,
    exchange: Exchange,
    options: TransferOptions,
    *,
    checkpoints: Checkpoints | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> tuple[Learned, dict[str, Any]]:
    """`learn_rows` for the model in a folder, which is loaded on the device of the options."""
    model = _saved(folder, options)
    return learn_rows(
        model,
        find_matrices(model),
        exchange,
        options,
        checkpoints=checkpoints,
        progress=progress,
        dry_run=dry_run,
    )


def check_saved(folder: Path, options: TransferOptions) -> None:
    """What `learn_rows_of_saved` would raise about the model, its layer or the device."""
    check_teacher(_saved(folder, options), options.distill.layer)


def _saved(folder: Path, options: TransferOptions) -> Any:
    """The model in a folder, to be run on the device of the options."""
    import torch

    device = torch_device(options.distill.device or "cpu")
    dtype = torch.float32 if device.type == "cpu" else None  # half precision is slow on a CPU
    return load_to_run(folder, dtype, options.init).to(device)


def learn_rows(
    model: Any,
    matrices: Matrices,
    exchange: Exchange,
    options: TransferOptions,
    *,
    checkpoints: Checkpoints | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> tuple[Learned, dict[str, Any]]:
    """Learned rows of the new tokens that the corpus holds, and figures about them.

    `model`: one in memory, in floating point, which is as before afterwards. `checkpoints`: where a
    killed run resumes. `dry_run`: two steps are measured, and no rows are returned. ValueError for
    a model that cannot be run or learned from, CorpusError for a corpus without new tokens.
    """
    import torch

    settings, made = options.distill, exchange.made.input.made
    check_teacher(model, settings.layer)
    assert isinstance(options.corpus, Corpus)
    causal = is_causal(model)
    around = around_snippets(model, exchange, causal=causal)
    positions = positions_of(model)
    most = [None if positions is None else positions - each.n_tokens for each in around]
    snippets = find_snippets(
        options.corpus,
        exchange.old,
        exchange.new,
        made,
        settings,
        most_old=most[0],
        most_new=most[1],
        threads=torch.get_num_threads(),
        progress=in_phase(progress, "snippets"),
    )
    has_any = snippets.counts > 0
    ids = made[has_any]
    figures: dict[str, Any] = {
        "start": settings.start,
        "n_learned": len(ids),
        "without_snippets": made[~has_any].tolist(),
        "snippets": len(snippets.snippets),
        "new_tokens": snippets.n_new,
        "old_tokens": snippets.n_old,
        "corpus_bytes": snippets.n_bytes,
        "epochs": settings.epochs,
    }
    advice = (
        f"no memory for a batch of {settings.batch_tokens} tokens (--distill-batch-tokens) and "
        "the state of the learned rows; give fewer"
    )
    with lack_of_memory(advice):
        student = make_student(model, matrices, exchange.made, exchange.n_rows)
        exchange.give_ids(student)
        with frozen(model, student):
            lesson = Lesson(
                model,
                student,
                snippets.snippets,
                around,
                matrices=matrices,
                sources=exchange.made,
                ids=ids,
                options=settings,
                seed=options.seed,
                has_next=causal,
            )
            if dry_run:
                return Learned(made[:0], {}), figures | cost_of(lesson)
            lesson.run(checkpoints, progress)
    rows = {role: own.values.detach().cpu() for role, own in lesson.rows.items()}
    return Learned(ids, rows), figures | lesson.outcome()


def cost_of(lesson: Lesson) -> dict[str, Any]:
    """Seconds and bytes that learning will take, by two steps of it (or the only one)."""
    import torch

    batches = list(lesson.batches())
    batch = batches[len(batches) // 2]
    seconds = 0.0
    # The first one pays for what is made once. A single step is all of the course, so it does too.
    for each in (batches[0], batch)[-lesson.n_steps :]:
        started = time.perf_counter()
        lesson.step(each)
        seconds = time.perf_counter() - started
    if lesson.device.type == "cuda":
        n_bytes = torch.cuda.max_memory_allocated(lesson.device)
    else:
        n_bytes = peak_rss_bytes()
    per_token = seconds / sum(len(snippet.new) for snippet in batch)
    return {
        "steps": lesson.n_steps,
        "tokens_per_second": round(1 / per_token, 1),
        "seconds": round(lesson.n_tokens * per_token, 1),
        "memory_bytes": n_bytes,
    }


def is_causal(model: Any) -> bool:
    """Whether the model has a head that predicts the next token."""
    name = type(model).__name__
    if output_embeddings(model) is None or "MaskedLM" in name or "ForPreTraining" in name:
        return False
    try:
        with probing(model):  # dropout would change what two calls have in common
            check_causal(model)
    except ValueError:
        return False
    return True


def around_snippets(model: Any, exchange: Exchange, *, causal: bool) -> tuple[Around, Around]:
    """Special tokens before and after a snippet, in old and in new ids.

    A causal model's BOS, as its config names it and bits per byte are measured; what the template
    puts around a text for an encoder. None where the new tokenizer lacks one of them.
    """
    if causal:
        bos = model.config.get_text_config().bos_token_id
        begin, end = [bos] if isinstance(bos, int) and bos >= 0 else [], []
    else:
        encoding = exchange.old.backend.encode("a", add_special_tokens=True)
        is_text = [not special for special in encoding.special_tokens_mask]
        begin = encoding.ids[: is_text.index(True)]
        end = encoding.ids[len(is_text) - is_text[::-1].index(True) :]
    moved = {each: exchange.move(each) for each in (*begin, *end)}
    new = {old_id: new_id for old_id, new_id in moved.items() if new_id is not None}
    if len(new) < len(moved):
        return Around(), Around()
    return (
        Around(tuple(begin), tuple(end)),
        Around(tuple(new[each] for each in begin), tuple(new[each] for each in end)),
    )
