"""The plan of a transfer, made before anything is changed: every row, every id, every new row.

It is the same for a model in memory and a saved one. Nothing is written. Only "auto" changes the
model, and it restores it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vocabshift.models.tables import Matrices
from vocabshift.surgery import config_ids
from vocabshift.surgery.checks import check_offsets, check_pad
from vocabshift.surgery.matching import TokenMatch, match_tokenizers
from vocabshift.surgery.methods import InitRequest, candidates, prepare
from vocabshift.surgery.options import AUTO, Score, TransferOptions
from vocabshift.surgery.report import TransferReport
from vocabshift.surgery.rows import InitContext, check_rows, move_rows, padded_rows
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.missing_bytes import LostCharacters
from vocabshift.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is decided before anything is changed."""

    match: TokenMatch
    changes: list[config_ids.Change]
    made: InitContext  # of what the new rows are made
    report: TransferReport


def make_plan(
    model: Any,
    matrices: Matrices,
    old: AnyTokenizer,
    new: AnyTokenizer,
    options: TransferOptions,
) -> Plan:
    """The new place of every row and id; `model`: any object with the configs of one.

    `options`: opened ones. For "auto" the model must be one in memory, which is as before
    afterwards. VocabMismatchError for what cannot be moved.
    """
    assert options.id_map is None or isinstance(options.id_map, TokenIdMap)
    assert not isinstance(options.overrides, str | Path)
    match = match_tokenizers(
        old, new, config=model.config, id_map=options.id_map, overrides=options.overrides or {}
    )
    sources, tokenizer = match.sources, match.tokenizer
    check_rows(matrices, sources, old.row_count)
    changes = config_ids.plan(model, match.specials, sources)
    if matrices.pad_is_fixed:
        check_pad(changes)
    n_rows = padded_rows(matrices, old.row_count, tokenizer.row_count, options.pad_to_multiple_of)
    check_offsets(model.config, sources, matrices.rows, n_rows)
    request = InitRequest(options.init, sources, old, tokenizer, matrices.tied, options)
    init = options.init
    tried: dict[str, float] = {}
    if init == AUTO and not sources.n_made:
        init = candidates(options)[0]  # nothing to make: all are alike
    if init == AUTO:
        assert options.score is not None
        contexts = (prepare(replace(request, init=name)) for name in candidates(options))
        with config_ids.applied_for_now(model, changes, n_rows):
            tried = score_each(
                model, matrices, contexts, tokenizer=tokenizer, n_rows=n_rows, score=options.score
            )
        init = next(iter(tried))
    report = TransferReport(
        n_copied=sources.n_copied,
        n_initialized=sources.n_made,
        n_removed=sources.n_removed,
        tied=matrices.tied,
        vocab_size=sources.n_copied + sources.n_made,
        rows=n_rows,
        old_rows=matrices.rows,
        init=init,
        special_ids=config_ids.moved_ids(changes),
        tried=tried,
        n_overridden=match.n_overridden,
        n_described=match.n_described,
        ambiguous={new_id: list(old_ids) for new_id, old_ids in sources.ambiguous},
        n_moved=int((sources.copied_from != sources.copied_to).sum()),
        n_by_mean=len(sources.without_pieces),
        lost_characters=LostCharacters.between(old, tokenizer),
    )
    return Plan(match, changes, prepare(replace(request, init=init)), report)


def score_each(
    model: Any,
    matrices: Matrices,
    contexts: Iterable[InitContext],
    *,
    tokenizer: Tokenizer,
    n_rows: int,
    score: Score,
) -> dict[str, float]:
    """Name -> what `score` gives, lowest first; among equals the earlier one.

    Every initializer is tried on the model, which is as before afterwards: a try costs memory for
    one more set of tables, and the best one is made a second time rather than kept. ValueError
    where no score is a finite number.
    """
    found = {}
    for context in contexts:
        with _rows_restored(model, matrices):
            move_rows(model, matrices, context, n_rows)
            value = float(score(model, tokenizer))
        found[context.init] = value if math.isfinite(value) else math.inf
    if not any(map(math.isfinite, found.values())):
        raise ValueError(
            f"no initializer gives the model a finite score on this text ({', '.join(found)}); "
            "is the model's own finite?"
        )
    return dict(sorted(found.items(), key=lambda entry: entry[1]))


@contextmanager
def _rows_restored(model: Any, matrices: Matrices) -> Iterator[None]:
    """Afterwards the modules hold the parameters, buffers and sizes that they held."""
    before = []
    for name in (name for table in matrices.tables for name in table.names):
        path, _, own = name.rpartition(".")
        module = model.get_submodule(path)
        counts = [key for key in ("num_embeddings", "out_features") if hasattr(module, key)]
        before += [(module, key, getattr(module, key)) for key in (own, *counts)]
    try:
        yield
    finally:
        for module, key, value in before:
            setattr(module, key, value)
