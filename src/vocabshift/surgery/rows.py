"""The rows of a table under a new vocabulary, block by block.

Owns the order of writing: kept rows are copied bit for bit, others come from an initializer, rows
of no token get a row that a head never prefers. Where the old rows lie and where the new ones go
(a tensor in memory, a file) makes no difference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.errors import VocabMismatchError
from vocabshift.models import tables
from vocabshift.models.tables import Matrices, Table
from vocabshift.surgery import initialize
from vocabshift.surgery.row_sources import TokenMap

if TYPE_CHECKING:
    import torch

_SEEDS = {"input": 0, "head": 1, "bias": 2, "further": 3}


def new_table(
    table: Table,
    token_map: TokenMap,
    init: str,
    n_rows: int,
    *,
    seed: int = 0,
    head_map: TokenMap | None = None,
    out: Any = None,
) -> Any:
    """The table's new rows (n_rows + beyond, width), as `new_matrix` makes them."""
    of_table = head_map if head_map is not None and table.role in ("head", "bias") else token_map
    of_table = _of_rows_there(of_table, table)
    return new_matrix(
        table.weight,
        of_table,
        initialize.initializer(init),
        n_rows + table.beyond,
        seed + _SEEDS[table.role],
        out=out,
    )


def new_matrix(
    old: torch.Tensor,
    token_map: TokenMap,
    init: initialize.Initializer,
    n_rows: int,
    seed: int,
    *,
    out: Any = None,
) -> Any:
    """A matrix (n_rows, hidden) of the dtype and device of `old` (old rows, hidden).

    `out`: what the rows are written to by `index_copy_`; None makes a tensor.

    Every row is written once and by its id. Rows of no token (padding, holes) get the mean of the
    old rows of no token, or of all where there are none: a head never prefers them.
    """
    import torch

    device, hidden = old.device, old.shape[1]
    new = out
    if new is None:
        new = torch.empty((n_rows, hidden), dtype=old.dtype, device=device)
    used = torch.from_numpy(token_map.old_ids).to(device)

    length = initialize.block_length(hidden)
    source = torch.from_numpy(token_map.copied_from).to(device)
    target = torch.from_numpy(token_map.copied_to).to(device)
    for from_ids, to_ids in zip(
        torch.split(source, length), torch.split(target, length), strict=True
    ):
        new.index_copy_(0, to_ids, old.index_select(0, from_ids))

    if token_map.n_made:
        make_rows = init(old, used, seed)
        made = torch.from_numpy(token_map.made).to(device)
        pieces = torch.from_numpy(token_map.pieces).to(device)
        offsets = torch.from_numpy(token_map.offsets).to(device)
        by_piece = token_map.weights
        weights = None if by_piece is None else torch.from_numpy(by_piece).to(device)
        for start, stop in initialize.blocks(token_map.offsets, hidden):
            ends = offsets[start : stop + 1]
            first, last = token_map.offsets[start], token_map.offsets[stop]
            own = None if weights is None else weights[first:last]
            rows = make_rows(pieces[first:last], ends, own)
            new.index_copy_(0, made[start:stop], rows.to(old.dtype))

    empty = torch.ones(n_rows, dtype=torch.bool, device=device)
    empty[target] = False
    empty[torch.from_numpy(token_map.made).to(device)] = False
    if bool(empty.any()):
        row = _padding_row(old, used).unsqueeze(0)
        for ids in torch.split(empty.nonzero().squeeze(1), length):
            new.index_copy_(0, ids, row.expand(len(ids), -1))
    return new


def _padding_row(old: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    import torch

    idle = torch.ones(len(old), dtype=torch.bool, device=old.device)
    idle[used] = False
    idle_ids = idle.nonzero().squeeze(1)
    row, _ = initialize.mean_and_std(old, idle_ids if len(idle_ids) else used)
    if not bool(torch.isfinite(row).all()):  # padding may never have been written
        row, _ = initialize.mean_and_std(old, used)
    return row.to(old.dtype)


def _of_rows_there(token_map: TokenMap, table: Table) -> TokenMap:
    """The map with sources that the table has: row 0 for those beyond it, or none at all."""
    rows = table.rows
    if int(token_map.old_ids.max(initial=-1)) < rows:
        return token_map
    if table.follows_row_0:
        return replace(
            token_map,
            copied_from=np.where(token_map.copied_from < rows, token_map.copied_from, 0),
            pieces=np.where(token_map.pieces < rows, token_map.pieces, 0),
            old_ids=token_map.old_ids[token_map.old_ids < rows],
        )
    if (token_map.pieces >= rows).any():
        raise VocabMismatchError(
            f"a new token is made of an old one that the {table.called} has no row for ({rows})"
        )
    there = token_map.copied_from < rows
    return replace(
        token_map,
        copied_from=token_map.copied_from[there],
        copied_to=token_map.copied_to[there],
        old_ids=token_map.old_ids[token_map.old_ids < rows],
    )


# The tables of a model in memory under a new vocabulary: checked, sized, put in place.
#
# Owns what is refused of old rows, how many rows there will be, and the parameters of a model that
# get them. How rows are made `new_rows` knows.
#
# transformers' `resize_token_embeddings` is not used: it would initialize every row once more, does
# not grow the bias of a tied head, and follows the config's idea of tying instead of the tensors'.


MAX_ALIGNMENT = 128
"""Rows of a padded model stay a multiple of what they were, up to this."""

_MAX_PADDING = 0.1
"""Share of rows without a token that padding explains; published models have under 0.03."""


def check_rows(matrices: Matrices, token_map: TokenMap, needed: int) -> None:
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
        used = torch.from_numpy(token_map.old_ids[token_map.old_ids < table.rows])
        used = used.to(table.weight.device)
        for ids in torch.split(used, initialize.block_length(table.weight.shape[1])):
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


def move_rows(
    model: Any,
    matrices: Matrices,
    token_map: TokenMap,
    init: str,
    n_rows: int,
    *,
    seed: int = 0,
    head_map: TokenMap | None = None,
) -> None:
    """Give the model tables of `n_rows` rows, made as `token_map` and `init` say.

    `head_map`: the map of an untied head and its bias, where their pieces or weights are others.
    """
    import torch

    with torch.no_grad():
        for table in matrices.tables:
            new = new_table(table, token_map, init, n_rows, seed=seed, head_map=head_map)
            put_rows(model, table, new)


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
    return tuple(tables.named_tensors(model)[table.names[0]].shape)
