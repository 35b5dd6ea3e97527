"""Measure language models on text and write a file: what `vocabshift score` and `latency` do.

Owns the order of the steps: an output that cannot be written is refused before a model is loaded,
and it appears whole or not at all. `evaluation` measures the models. It is imported on use, so
that the command line can show choices and defaults at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vocabshift.models.load import DTYPES
from vocabshift.progress import Progress
from vocabshift.storage.output import check_free_file, write_whole

if TYPE_CHECKING:
    from rich.table import Table

    from vocabshift.evaluation.latency.latency import Latency, Responder
    from vocabshift.evaluation.scoring.score_models import ScoredModels
    from vocabshift.results import Results
    from vocabshift.text.corpus import Corpus

__all__ = [
    "DTYPES",
    "acceptance_tables",
    "latency_table",
    "measure_latency",
    "score_draft_to_file",
    "score_tables",
    "score_to_file",
]


def score_to_file(
    models: Sequence[str | Path],
    corpus: Corpus,
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
    output: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> ScoredModels:
    """Bits per byte of models on text, as in `vocabshift.score_models`, optionally into a file.

    `output`: the rows as JSON lines. Before anything is loaded: FileExistsError if it exists,
    unless `force`; ValueError if it is an input. `vocabshift.score_models` documents the rest.
    """
    from vocabshift.evaluation.scoring.score_models import score_models

    out = None
    if output is not None:
        out = check_free_file(output, force=force, inputs=[*models, *corpus.paths])
    found = score_models(
        models,
        corpus,
        context=context,
        overlap=overlap,
        batch_tokens=batch_tokens,
        dtype=dtype,
        device=device,
        trust_remote_code=trust_remote_code,
        progress=progress,
    )
    if out is not None:
        write_whole(out, found.results.to_jsonl())
    return found


def score_draft_to_file(
    target: str | Path,
    draft: str | Path,
    corpus: Corpus,
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int | None = None,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
    output: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Results:
    """The acceptance of a draft model's tokens, as `evaluation.scoring.draft.score_draft` does.

    batch_tokens: None takes 512. `output` and `force`: as for `score_to_file`.
    """
    from vocabshift.evaluation.scoring.draft import BATCH_TOKENS, score_draft

    out = None
    if output is not None:
        out = check_free_file(output, force=force, inputs=[target, draft, *corpus.paths])
    rows = score_draft(
        target,
        draft,
        corpus,
        context=context,
        overlap=overlap,
        batch_tokens=batch_tokens or BATCH_TOKENS,
        dtype=dtype,
        device=device,
        trust_remote_code=trust_remote_code,
        progress=progress,
    )
    if out is not None:
        write_whole(out, rows.to_jsonl())
    return rows


def acceptance_tables(rows: Results) -> Iterator[Table]:
    """The terminal output of `score_draft_to_file`: one table for each kind of acceptance."""
    from vocabshift.report.tables import to_rich

    for metric in rows.distinct("metric"):
        yield to_rich(rows, metric, intervals=True)


def score_tables(scored: ScoredModels) -> Iterator[Table]:
    """The terminal output: bits per byte, then the pairs of models."""
    from vocabshift.report.tables import score_comparisons, to_rich

    for metric in scored.results.distinct("metric"):
        yield to_rich(scored.results, metric, intervals=True)
    if scored.comparisons:
        yield score_comparisons(scored.comparisons)


def measure_latency(
    models: Sequence[str | Path],
    corpus: Corpus,
    *,
    servers: Sequence[str] = (),
    n_prompts: int = 20,
    prompt_bytes: int = 512,
    max_new_tokens: int = 64,
    repeats: int = 10,
    warmup: int = 5,
    device: str | None = None,
    dtype: str | None = None,
    trust_remote_code: bool = False,
    output: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Latency:
    """Time causal models on prompts of each language: first token, tokens and bytes per second.

    `models`: folders or Hub names, or, with `servers`, the names that a server knows. `servers`:
    one address of an OpenAI-compatible server for all models, or one for each. `n_prompts` prompts
    of each language, of at most `prompt_bytes` bytes of UTF-8 each, are answered greedily with
    `max_new_tokens` tokens. Each model gets `warmup` untimed requests; then follow `repeats`
    rounds over all prompts, in which the models take turns. `device` (by default a GPU if there is
    one), `dtype` (by default float32) and `trust_remote_code` (run code from the model folder)
    apply to models in this process. `corpus`: the text that prompts are cut from. `progress` is
    called with the phase "requests", the requests done and the total.

    Rows by model and language: seconds to the first token; tokens, bytes and characters per
    second; tokens per prompt; peak memory in bytes if known. The 95 % intervals are a bootstrap
    over repeats. `output`: the rows as JSON lines, written whole or not at all.

    Before anything is loaded: FileExistsError if `output` exists, unless `force`; ValueError if it
    is an input, or for arguments that contradict each other; CorpusError for a language with too
    little text. OSError if a server cannot be reached.
    """
    from vocabshift.evaluation.latency.latency import cut_prompts
    from vocabshift.evaluation.latency.latency import measure_latency as measure

    out = None
    if output is not None:
        out = check_free_file(output, force=force, inputs=corpus.paths)
    prompts = cut_prompts(corpus, n_prompts=n_prompts, prompt_bytes=prompt_bytes)
    if servers and (device or dtype or trust_remote_code):
        raise ValueError("--device, --dtype and --trust-remote-code are the server's own matter")
    responders = (
        _served(models, servers, max_new_tokens)
        if servers
        else _local(models, max_new_tokens, device, dtype, trust_remote_code)
    )
    found = measure(responders, prompts, warmup=warmup, repeats=repeats, progress=progress)
    if out is not None:
        write_whole(out, found.results.to_jsonl())
    return found


def _local(
    models: Sequence[str | Path],
    max_new_tokens: int,
    device: str | None,
    dtype: str | None,
    trust_remote_code: bool,
) -> dict[str, Responder]:
    """Models in this process, by the names used in the rows."""
    from vocabshift.evaluation.latency.local import load_local
    from vocabshift.evaluation.lines.subject import subject_names

    return {
        name: load_local(
            str(model),
            max_new_tokens=max_new_tokens,
            device=device or "auto",
            dtype=dtype or "float32",
            trust_remote_code=trust_remote_code,
        )
        for name, model in zip(subject_names(models), models, strict=True)
    }


def _served(
    models: Sequence[str | Path], servers: Sequence[str], max_new_tokens: int
) -> dict[str, Responder]:
    """Models on servers, by the names used in the rows."""
    from vocabshift.evaluation.latency.server import ServedModel
    from vocabshift.evaluation.lines.subject import subject_names

    if len(servers) not in (1, len(models)):
        raise ValueError(
            f"{len(servers)} addresses after --server for {len(models)} models; give one, "
            "or one for each"
        )
    urls = servers if len(servers) == len(models) else [servers[0]] * len(models)
    return {
        name: ServedModel(url, str(model), max_new_tokens=max_new_tokens)
        for name, model, url in zip(subject_names(models), models, urls, strict=True)
    }


def latency_table(results: Results) -> Table:
    """The terminal output: models under each language, values with half the 95 % interval."""
    from vocabshift.report.model_tables import latency_table as table

    return table(results)
