"""The rows of a table under a new vocabulary, block by block, and the parameters that get them.

Kept rows are copied bit for bit, others come from an initializer, and rows of no token get a row
that a head never prefers. Old and new rows may be tensors in memory or files. Owns the checks of
old rows and the number of new ones, too. torch is imported when a function runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.models.tables import Matrices, Table, block_length, named_tensors
from vocabshift.surgery import initialize
from vocabshift.surgery.row_sources import Ids, RowSources

if TYPE_CHECKING:
    import torch

_SEEDS = {"input": 0, "head": 1, "bias": 2, "further": 3}


@dataclass(frozen=True, eq=False)
class Learned:
    """Rows that were learned by running the model, in the place of those made of old rows."""

    ids: Ids  # (n_learned,) new ids
    rows: Mapping[str, torch.Tensor]  # role of a table -> (n_learned, width), on the CPU


@dataclass(frozen=True, eq=False)
class InitContext:
    """One prepared initializer: its name, and the sources of each table's new rows."""

    init: str
    seed: int
    input: RowSources
    head: RowSources  # of an untied head and of its bias
    make: initialize.RowFunction
    learned: Learned | None = None

    def of_table(self, table: Table) -> RowSources:
        """The sources of this table's rows, as far as the table has these."""
        return _there(self.head if table.role in ("head", "bias") else self.input, table)


def new_table(table: Table, made: InitContext, n_rows: int, *, out: Any = None) -> Any:
    """The table's new rows (n_rows + beyond, width), as `new_matrix` makes them, or learned."""
    import torch

    seed = made.seed + _SEEDS[table.role]
    new = new_matrix(
        table.weight, made.of_table(table), made.make, n_rows + table.beyond, seed, out=out
    )
    if made.learned is not None and table.role in made.learned.rows:
        ids = torch.from_numpy(made.learned.ids).to(table.weight.device)
        rows = made.learned.rows[table.role]
        new.index_copy_(0, ids, rows.to(table.weight.device, table.weight.dtype))
    return new


def new_matrix(
    old: torch.Tensor,
    sources: RowSources,
    make: initialize.RowFunction,
    n_rows: int,
    seed: int,
    *,
    out: Any = None,
) -> Any:
    """A matrix (n_rows, hidden) of the dtype and device of `old` (old rows, hidden).

    `out`: what the rows are written to by `index_copy_`; None makes a tensor.

    Every row is written once and by its id. A row that is of no token (padding, holes) before and
    after stays; others of no token get the mean of the old rows of no token. Where there are none,
    all get the mean of the old tokens' rows: a head never prefers them.
    """
    import torch

    device, hidden = old.device, old.shape[1]
    new = out
    if new is None:
        new = torch.empty((n_rows, hidden), dtype=old.dtype, device=device)
    used = torch.from_numpy(sources.old_ids).to(device)

    length = block_length(hidden)
    source = torch.from_numpy(sources.copied_from).to(device)
    target = torch.from_numpy(sources.copied_to).to(device)
    for from_ids, to_ids in zip(
        torch.split(source, length), torch.split(target, length), strict=True
    ):
        new.index_copy_(0, to_ids, old.index_select(0, from_ids))

    if sources.n_made:
        make_rows = make(old, used, seed)
        made = torch.from_numpy(sources.made).to(device)
        pieces = torch.from_numpy(sources.pieces).to(device)
        offsets = torch.from_numpy(sources.offsets).to(device)
        by_piece = sources.weights
        weights = None if by_piece is None else torch.from_numpy(by_piece).to(device)
        for start, stop in initialize.blocks(sources.offsets, hidden):
            ends = offsets[start : stop + 1]
            first, last = sources.offsets[start], sources.offsets[stop]
            own = None if weights is None else weights[first:last]
            rows = make_rows(pieces[first:last], ends, own)
            new.index_copy_(0, made[start:stop], rows.to(old.dtype))

    empty = torch.ones(n_rows, dtype=torch.bool, device=device)
    empty[target] = False
    empty[torch.from_numpy(sources.made).to(device)] = False
    if bool(empty.any()):
        row, idle_ids = _padding_row(old, used)
        kept = idle_ids[idle_ids < n_rows]
        kept = kept[empty[kept]]
        empty[kept] = False
        for ids in torch.split(kept, length) if len(kept) else ():
            new.index_copy_(0, ids, old.index_select(0, ids))
        rest = empty.nonzero().squeeze(1)
        for ids in torch.split(rest, length) if len(rest) else ():
            new.index_copy_(0, ids, row.unsqueeze(0).expand(len(ids), -1))
    return new


def _padding_row(old: torch.Tensor, used: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A row for padding, and the ids of the old padding, if its rows are fit to stay."""
    import torch

    idle = torch.ones(len(old), dtype=torch.bool, device=old.device)
    idle[used] = False
    idle_ids = idle.nonzero().squeeze(1)
    if len(idle_ids):
        row, _ = initialize.mean_and_std(old, idle_ids)
        # Subtle: padding may never have been written, and it may repeat the row of a token, which
        # the head would then find as likely. Numbers of a bias may be equal by chance.
        is_usable = bool(torch.isfinite(row).all())
        if is_usable and (old.shape[1] == 1 or not _is_row(old, used, row.to(old.dtype))):
            return row.to(old.dtype), idle_ids
    row, _ = initialize.mean_and_std(old, used)
    return row.to(old.dtype), idle_ids[:0]


def _is_row(old: torch.Tensor, used: torch.Tensor, row: torch.Tensor) -> bool:
    import torch

    blocks = torch.split(used, block_length(old.shape[1]))
    return any(bool((old.index_select(0, ids) == row).all(dim=1).any()) for ids in blocks)


def _there(sources: RowSources, table: Table) -> RowSources:
    """Sources that the table has rows for: row 0 for those beyond it, or none at all."""
    rows = table.rows
    if int(sources.old_ids.max(initial=-1)) < rows:
        return sources
    if table.follows_row_0:
        return replace(
            sources,
            copied_from=np.where(sources.copied_from < rows, sources.copied_from, 0),
            pieces=np.where(sources.pieces < rows, sources.pieces, 0),
            old_ids=sources.old_ids[sources.old_ids < rows],
        )
    if (sources.pieces >= rows).any():
        raise VocabMismatchError(
            f"a new token is made of an old one that the {table.called} has no row for ({rows})"
        )
    there = sources.copied_from < rows
    return replace(
        sources,
        copied_from=sources.copied_from[there],
        copied_to=sources.copied_to[there],
        old_ids=sources.old_ids[sources.old_ids < rows],
    )


# The tables of a model in memory: checked, sized, put in place. transformers'
# `resize_token_embeddings` is not used: it would initialize every row once more, does not grow the
# bias of a tied head, and follows the config's idea of tying instead of the tensors'.


MAX_ALIGNMENT = 128
"""Rows of a padded model stay a multiple of what they were, up to this."""

_MAX_PADDING = 0.1
"""Share of rows without a token that padding explains; published models have under 0.03."""


def check_rows(matrices: Matrices, sources: RowSources, needed: int) -> None:
    """VocabMismatchError for too few rows, far too many, or for a row that is not finite."""
    import torch

    first = matrices.tables[0]
    if matrices.rows - needed > max(MAX_ALIGNMENT, _MAX_PADDING * matrices.rows):
        raise VocabMismatchError(
            f"the {first.called} of the model: {matrices.rows} rows, but its tokenizer has tokens "
            f"for {needed} only, which is more than padding; give the tokenizer that belongs to "
            "the model (or, if these rows are spare, resize_token_embeddings to their number first)"
        )
    for table in matrices.tables:
        is_short_by_design = first.beyond > 0 or table.follows_row_0
        if table.rows < needed and (table is first or not is_short_by_design):
            raise VocabMismatchError(
                f"the {table.called} of the model: {table.rows} rows, but its tokenizer needs "
                f"{needed}; give the tokenizer that belongs to the model"
            )
    for table in matrices.tables:
        used = torch.from_numpy(sources.old_ids[sources.old_ids < table.rows])
        used = used.to(table.weight.device)
        for ids in torch.split(used, block_length(table.weight.shape[1])):
            rows = table.weight.index_select(0, ids)
            # A sum is finite only if all its terms are (one that overflows is looked at again).
            doubtful = ~torch.isfinite(rows.sum(1, dtype=torch.float32))
            if not bool(doubtful.any()):
                continue
            bad = ids[doubtful][~torch.isfinite(rows[doubtful]).all(1)].tolist()
            if bad:
                raise VocabMismatchError(
                    f"row {bad[0]} of the {table.called} of the model holds NaN or infinity (and "
                    f"{len(bad) - 1} more near it); the checkpoint is damaged, repair it first"
                )


def padded_rows(matrices: Matrices, old_rows: int, new_rows: int, multiple: int | None) -> int:
    """Rows that the model gets: the tokenizer's, padded to `multiple`.

    `None`: as the model was padded before (to its largest power of two up to 128, if at all).
    """
    if multiple is None:
        rows = matrices.rows
        multiple = 1 if rows <= old_rows else min(rows & -rows, MAX_ALIGNMENT)
    return -(-new_rows // multiple) * multiple


def move_rows(model: Any, matrices: Matrices, made: InitContext, n_rows: int) -> None:
    """Give the model tables of `n_rows` rows."""
    import torch

    with torch.no_grad():
        for table in matrices.tables:
            put_rows(model, table, new_table(table, made, n_rows))


def put_rows(model: Any, table: Table, rows: torch.Tensor) -> None:
    """Give the model new rows (rows, width) for one of its tables."""
    own = rows.squeeze(1) if len(_shape(model, table)) == 1 else rows.movedim(0, table.dim)
    put_tensor(model, table.names, own.contiguous())


def put_tensor(model: Any, names: tuple[str, ...], data: torch.Tensor) -> None:
    """Give the model one new parameter (or buffer) under all these names.

    Subtle: `.data = …` under a living parameter would break every autograd graph that knows it.
    """
    import torch

    new: Any = None
    for name in names:
        path, _, own = name.rpartition(".")
        module = model.get_submodule(path)
        if own in module._buffers:
            module._buffers[own] = data
            continue
        if new is None:
            old = getattr(module, own)
            new = torch.nn.Parameter(data, requires_grad=old.requires_grad)
        setattr(module, own, new)
        for count in ("num_embeddings", "out_features"):
            if hasattr(module, count):
                setattr(module, count, data.shape[0])


def _shape(model: Any, table: Table) -> tuple[int, ...]:
    return tuple(named_tensors(model)[table.names[0]].shape)
