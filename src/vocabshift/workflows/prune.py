"""Prune into a folder: what `vocabshift prune` does.

Owns the files of the folder (the tokenizer's, `token_map.json`, `vocabshift.json`) and the keys of
the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.progress import Progress
from vocabshift.pruning.counts import Source, languages_of
from vocabshift.pruning.effects import Pruning
from vocabshift.pruning.options import PruningOptions, check_kind, check_languages, parse_keep
from vocabshift.pruning.orders import NEED_COUNTS, ORDERS
from vocabshift.pruning.prune import prune_with_report
from vocabshift.storage.outcome import Outcome, check_output, outcome
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import TokenizerLike, open_tokenizer
from vocabshift.tokenizer.pretrained_folder import write_files

__all__ = ["NEED_COUNTS", "ORDERS", "prune_to_folder"]


def prune_to_folder(
    tokenizer: TokenizerLike,
    source: Source | None,
    out: str | Path | None,
    *,
    n_tokens: int | None = None,
    vocab_size: int | None = None,
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    keep_ids: bool = False,
    unreachable_first: bool = False,
    drop_unseen_characters: bool = False,
    complete_bytes: bool = False,
    base: str | Path | None = None,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Prune, measure, and write the folder.

    tokenizer, source, n_tokens, vocab_size, order, keep, keep_ids, unreachable_first,
        drop_unseen_characters, complete_bytes: as for `prune`.
    out: the folder, which appears whole or not at all; None: nothing is written.
    base: the path of the tokenizer, if it is passed loaded; a token map found there is extended
        by ours.
    threads: the result does not depend on it. progress: called with the phase, the bytes done and
        the total.

    Returns the keys of `vocabshift prune --json`. ValueError if more tokens are requested than can
    be removed; InvalidTokenizerError if text would not round-trip as before; FileExistsError if
    `out` exists, without `force`.
    """
    place = tokenizer if base is None else base
    if out is not None:
        check_output(out, source, place, force=force)
    options = PruningOptions(
        order=order,
        n_tokens=n_tokens,
        vocab_size=vocab_size,
        keep=parse_keep(keep),
        keep_ids=keep_ids,
        unreachable_first=unreachable_first,
        drop_unseen_characters=drop_unseen_characters,
        complete_bytes=complete_bytes,
    )
    check_languages(options.keep, [] if source is None else languages_of(source))
    loaded = open_tokenizer(tokenizer)
    before = id_map.find(place)
    if before is not None:
        before.require(before.old, loaded.fingerprint)
    check_kind(loaded, options)
    inputs = [source, place]
    with (
        nullcontext()
        if out is None
        else outcome("prune", out, inputs=inputs, force=force) as output
    ):
        pruning = prune_with_report(loaded, source, options, threads=threads, progress=progress)
        _check_round_trip(pruning, loaded.name)
        if output is not None:
            _write(pruning, loaded, options, before, output)
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
    output: Outcome,
) -> None:
    write_files(pruning.tokenizer, output.folder)
    step = pruning.id_map
    figures = asdict(pruning.report)
    fingerprint = figures.pop("corpus_fingerprint")
    output.record(
        {
            "base": tokenizer.name,
            "base_fingerprint": tokenizer.fingerprint,
            **asdict(options),
        },
        figures,
        corpus_fingerprint=fingerprint,
        id_map=step if before is None else before.then(step),
    )
