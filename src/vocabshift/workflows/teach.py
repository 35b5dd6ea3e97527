"""A teacher's log-probabilities of a corpus, read once for many runs: what `vocabshift teach` does.

Joins the tokenizer of the teacher (of any kind, placed in the text byte by byte), the model, and
the folder that `cpt` reads. Also opens the teacher that runs along with `cpt`, and makes what a
teacher says of packed text a data set for other training loops.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import __version__
from vocabshift.cpt.objectives import boundary_ids
from vocabshift.cpt.teacher import LiveTeacher
from vocabshift.cpt.teacher_folder import weights_key
from vocabshift.cpt.teacher_writer import groups_of, write_readings
from vocabshift.evaluation.lines.placing import flat_spans
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.models.folder import require_model
from vocabshift.models.load import check_causal, check_fit, check_model, load_causal_model
from vocabshift.models.windows import warn_of_chat_start
from vocabshift.progress import Progress, in_phase
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.storage.outcome import check_output, config_hash, outcome
from vocabshift.storage.output import CHECKPOINTS
from vocabshift.text.readers import input_key
from vocabshift.tokenizer.any_tokenizer import Ids, Offsets
from vocabshift.tokenizer.engine import Engine

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from vocabshift.cpt.chunks import Teacher
    from vocabshift.cpt.config import LoopConfig
    from vocabshift.cpt.packed_dataset import MatchedDataset
    from vocabshift.cpt.packed_ids import PackedIds
    from vocabshift.cpt.teacher_folder import StoredTeacher
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.formats.load import TokenizerLike

__all__ = ["live_teacher", "matched_dataset", "open_teacher", "teach_to_folder"]

_TRIED_TOKENS = 2048  # to measure the speed of a dry run


def live_teacher(
    model: Any,
    tokenizer: Any,
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
) -> LiveTeacher:
    """A causal model in memory as a teacher that reads when it is asked.

    `tokenizer`: its own, of any kind that `evaluate` takes. The others: as in `score`.
    VocabMismatchError where the two do not fit, ValueError for a model that sees what follows.
    """
    engine = engine_of(tokenizer)
    check_fit(model, engine.row_count)
    warn_of_chat_start(model, engine.tokenizer)
    model.eval()
    check_causal(model)

    def spans(texts: Sequence[str]) -> tuple[Ids, Offsets, NDArray[np.int64]]:
        found = flat_spans(engine, texts)
        return found.ids, found.offsets, found.ends

    return LiveTeacher(
        model,
        spans,
        special_ids=sorted(engine.special_ids),
        boundary_ids=_boundary_ids(engine),
        context=context,
        overlap=overlap,
        batch_tokens=batch_tokens,
    )


def _boundary_ids(engine: Engine) -> tuple[int, ...]:
    try:
        return boundary_ids(engine.tokenizer)
    except ValueError:  # no spaces: a run with debiasing refuses it
        return ()


def teach_to_folder(
    model: str | Path,
    corpus: Corpus,
    out: str | Path,
    *,
    known: str | Sequence[str] = (),
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
    dtype: str = "float32",
    device: str = "auto",
    dry_run: bool = False,
    force: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Let a causal model read a corpus, and store the log-probability of each of its tokens.

    model: folder or Hub name, with its tokenizer. Each document is read by itself, after the BOS
        where its config has one, in windows of `context` tokens that repeat `overlap` of those
        before (defaults and `batch_tokens`, `dtype`, `device`: as in `score`).
    known: languages that the model knows: only their documents are read; a run of `cpt` learns the
        others by next-token loss alone. Empty: all.
    out: the folder, which appears whole or not at all; 12 bytes a token. The same call resumes a
        run that was killed, unless `resume` is off.
    dry_run: count, measure the speed on a little text, write nothing.
    progress: called with the phases "count" and "teach", tokens done and all tokens.

    Returns the keys of `vocabshift teach --json`. ValueError for weights, for a language that the
    corpus does not have, and for a model that is not causal; FileExistsError if `out` exists,
    without `force`; CorpusError for unreadable text.
    """
    check_output(out, model, corpus, force=force)
    if any(part.weight != 1 for part in corpus.parts):
        raise ValueError("every document is read once; leave out the @WEIGHT of the corpus")
    known = [known] if isinstance(known, str) else list(known)
    read = corpus.select(known) if known else corpus  # refuses labels that are not there
    read.require_text()
    teacher, about = open_teacher_model(
        model,
        context=context,
        overlap=overlap,
        batch_tokens=batch_tokens,
        dtype=dtype,
        device=device,
    )
    about["known"] = known
    cost = _count(teacher, corpus, known, progress)
    if dry_run:
        speed = _speed(teacher, read)
        return {
            "out": str(out),
            "dry_run": True,
            **cost,
            "n_output_bytes": 12 * cost["n_tokens"] + 20 * cost["n_documents"],
            "tokens_per_second": speed,
            "seconds": cost["n_read_tokens"] / speed,
        }
    source = input_key(corpus)
    facts = {**about, "package": __version__, "input": source or uuid.uuid4().hex}
    began = time.perf_counter()
    with outcome(
        "teach",
        out,
        inputs=[model, corpus],
        force=force,
        keep_checkpoints=source is not None,
        resume=resume,
    ) as output:
        checkpoints = Checkpoints(output.folder / CHECKPOINTS, config_hash(facts))
        done = in_phase(progress, "teach") or (lambda *_: None)
        figures = write_readings(
            teacher,
            corpus,
            output.folder,
            checkpoints,
            about,
            progress=lambda n_tokens: done(n_tokens, cost["n_read_tokens"]),
        )
        figures["n_bytes"] = cost["n_bytes"]  # the folder places all text, also what is not read
        result = output.record({**about, "batch_tokens": batch_tokens}, figures)
    seconds = time.perf_counter() - began
    return {
        **result,
        "dry_run": False,
        "n_read_tokens": cost["n_read_tokens"],
        "seconds": round(seconds, 3),
        "tokens_per_second": cost["n_read_tokens"] / max(seconds, 1e-9),
    }


def open_teacher_model(
    model: str | Path,
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
    dtype: str = "float32",
    device: str = "auto",
) -> tuple[LiveTeacher, dict[str, Any]]:
    """Load a teacher, and plain JSON values by which it is recognised."""
    check_model(model)
    folder = require_model(model)
    engine = engine_of(folder)
    loaded = load_causal_model(folder, dtype=dtype, device=device)
    teacher = live_teacher(
        loaded, engine, context=context, overlap=overlap, batch_tokens=batch_tokens
    )
    return teacher, {
        "model": str(model),
        "weights": weights_key(folder),
        "tokenizer": engine.tokenizer.fingerprint,
        "context": teacher.context,
        "overlap": teacher.overlap,
        "dtype": dtype,
    }


def open_teacher(found: Path | StoredTeacher | None, device: Any) -> Teacher | None:
    """The teacher of a run: what it has read, or the model in the folder, on the run's device."""
    return open_teacher_model(found, device=str(device))[0] if isinstance(found, Path) else found


def matched_dataset(
    model: PreTrainedModel,
    tokenizer: TokenizerLike,
    packed: PackedIds | str | Path,
    teacher: Teacher,
    config: LoopConfig | None = None,
) -> MatchedDataset:
    """The training data of `LikelihoodMatching`: packed documents, and what a teacher says of them.

    model, tokenizer: those that are trained. packed: a folder that `vocabshift encode` wrote with
        this tokenizer. teacher: a `StoredTeacher` of the same text in the same order, or a live
        one. config: `sequence_length` and the settings of the objective.

    Documents keep their order; a trainer shuffles rows. Errors as for `pretrain`: ValueError or
    VocabMismatchError for a model, tokenizer, teacher and text that do not fit each other.
    """
    from vocabshift.cpt import loop
    from vocabshift.cpt.chunks import MatchedRows
    from vocabshift.cpt.config import MATCHING, LoopConfig, Phase
    from vocabshift.cpt.objectives import special_ids
    from vocabshift.cpt.packed_dataset import MatchedDataset
    from vocabshift.cpt.packed_ids import MappedRows, PackedIds
    from vocabshift.cpt.teacher_folder import check_teacher
    from vocabshift.tokenizer.formats.load import as_tokenizer

    config = config or LoopConfig(objective=MATCHING)
    if config.objective != MATCHING:
        raise ValueError(f"the objective is {config.objective!r}; it must be {MATCHING!r} here")
    ours = as_tokenizer(tokenizer)
    opened = packed if isinstance(packed, PackedIds) else PackedIds.open(packed)
    opened.require(ours)
    separator = loop.check_model(model, ours.row_count, config, [Phase(n_bytes=1)])
    check_teacher(config, teacher, opened.document_bytes)
    special = special_ids(model, ours, separator, config)
    chosen = np.flatnonzero(opened.document_bytes)
    rows = MappedRows(opened, chosen, separator=separator, length=config.sequence_length)
    matched = MatchedRows(rows, rows.documents, config.sequence_length, ours, teacher, config)
    return MatchedDataset(matched, config, special)


def _count(
    teacher: LiveTeacher, corpus: Corpus, known: Sequence[str], progress: Progress | None
) -> dict[str, int]:
    """All documents; of those that are read bytes, tokens, and tokens with those that windows
    repeat."""
    counts = {"n_documents": 0, "n_bytes": 0, "n_tokens": 0, "n_read_tokens": 0}
    for documents in groups_of(corpus, known):
        texts = [text for text, is_read in documents if is_read]
        ids, _, _, windows = teacher.windows(texts)
        counts["n_documents"] += len(documents)
        counts["n_bytes"] += sum(len(text.encode()) for text in texts)
        counts["n_tokens"] += len(ids)
        counts["n_read_tokens"] += sum(window.ids.size for window in windows)
        if progress is not None:
            progress("count", counts["n_read_tokens"], None)
    return counts


def _speed(teacher: LiveTeacher, corpus: Corpus) -> float:
    """Tokens a second, measured on the first documents; of a long one, on its beginning."""
    tried: list[str] = []
    n_tokens = 0
    for text, _ in next(groups_of(corpus)):
        ends = teacher.windows([text])[2][:_TRIED_TOKENS]
        tried.append(text.encode()[: ends.max(initial=0)].decode(errors="ignore"))
        n_tokens += sum(window.ids.size for window in teacher.windows(tried[-1:])[-1])
        if n_tokens >= _TRIED_TOKENS:
            break
    teacher.read_texts(tried[:1])  # what the first call prepares does not count
    began = time.perf_counter()
    teacher.read_texts(tried)
    return max(n_tokens, 1) / max(time.perf_counter() - began, 1e-9)
