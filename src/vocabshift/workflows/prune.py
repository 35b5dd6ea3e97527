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
from vocabshift.pruning.options import PruningOptions, check_kind
from vocabshift.pruning.prune import prune_with_report
from vocabshift.storage.output import atomic_folder, check_free
from vocabshift.storage.provenance import write_provenance
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer


def prune_to_folder(
    tokenizer: Tokenizer | UnigramOrWordPieceTokenizer,
    source: Source | None,
    options: PruningOptions,
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
        before.require(before.old, tokenizer.fingerprint)
    check_kind(tokenizer, options)
    # The folder is taken before the work, so that one that cannot be written is told at once.
    with nullcontext() if out is None else atomic_folder(out, force=force) as partial:
        pruning = prune_with_report(tokenizer, source, options, threads=threads, progress=progress)
        _check_round_trip(pruning, tokenizer.name)
        if partial is not None:
            _write(pruning, tokenizer, options, before, partial)
    return {"out": None if out is None else str(out), **asdict(pruning.report)}


def _check_round_trip(pruning: Pruning, name: str) -> None:
    if pruning.report.round_trip_failures:
        raise InvalidTokenizerError(
            f"{pruning.report.round_trip_failures} documents of the corpus would not come back as "
            f"{name} gives them back; nothing is written: keep the tokens that they need "
            "(see --keep), or prune fewer"
        )


def _write(
    pruning: Pruning,
    tokenizer: AnyTokenizer,
    options: PruningOptions,
    before: id_map.TokenIdMap | None,
    folder: Path,
) -> None:
    write_files(pruning.tokenizer, folder)
    step = pruning.id_map
    (step if before is None else before.then(step)).save(folder)
    base = {"base": tokenizer.name, "base_fingerprint": tokenizer.fingerprint}
    config = {**base, **asdict(options)}
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
