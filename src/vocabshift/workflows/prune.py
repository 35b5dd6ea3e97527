"""Prune into a folder: what `vocabshift prune` does.

Owns the files of the folder (the tokenizer's, `token_map.json`, `vocabshift.json`) and the keys of
the contract.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.pruning.counts import Progress, Source
from vocabshift.pruning.effects import Pruning
from vocabshift.pruning.prune import Subject, prune_subject
from vocabshift.pruning.request import Request
from vocabshift.storage.output import atomic_folder, check_free
from vocabshift.storage.provenance import write_provenance
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.tokenizer import Tokenizer


def prune_to_folder(
    subject: Subject,
    source: Source | None,
    request: Request,
    out: Path | None,
    *,
    base: str | Path,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Prune, write the folder (nothing for None), and give the contract's keys.

    `base`: where the tokenizer came from; a token map that lies there is the beginning of ours.
    The folder appears whole or not at all. FileExistsError where it exists, without `force`.
    """
    if out is not None:
        check_free(out, force=force, inputs=[*_paths(source), *_local(base)])
    before = id_map.find(base)
    if before is not None:
        before.require(before.old, subject.fingerprint)
    # The folder is taken before the work, so that one that cannot be written is told at once.
    with nullcontext() if out is None else atomic_folder(out, force=force) as partial:
        pruning = prune_subject(subject, source, request, threads=threads, progress=progress)
        _check_round_trip(pruning, subject)
        if partial is not None:
            _write(pruning, subject, request, before, partial)
    return {"out": None if out is None else str(out), **asdict(pruning.report)}


def _check_round_trip(pruning: Pruning, subject: Subject) -> None:
    if pruning.report.round_trip_failures:
        raise InvalidTokenizerError(
            f"{pruning.report.round_trip_failures} documents of the corpus would not come back as "
            f"{subject.name} gives them back; nothing is written: keep the tokens that they need "
            "(see --keep), or prune fewer"
        )


def _write(
    pruning: Pruning,
    subject: Subject,
    request: Request,
    before: id_map.IdMap | None,
    folder: Path,
) -> None:
    if isinstance(pruning.tokenizer, Tokenizer):
        write_files(pruning.tokenizer, folder)
    else:
        pruning.tokenizer.write_files(folder)
    step = pruning.id_map
    (step if before is None else before.then(step)).save(folder)
    config = {"base": subject.name, "base_fingerprint": subject.fingerprint, **asdict(request)}
    figures = asdict(pruning.report)
    fingerprint = figures.pop("corpus_fingerprint")
    write_provenance(folder, "prune", config, figures, corpus_fingerprint=fingerprint)


def _paths(source: Source | None) -> list[Path]:
    if source is None:
        return []
    return source.paths if isinstance(source, Corpus) else [source.path]


def _local(base: str | Path) -> list[Path]:
    """The tokenizer itself, where it is a folder or file here."""
    path = Path(base)
    try:
        return [path] if path.exists() else []
    except (OSError, ValueError):
        return []
