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
from vocabshift.surgery import initialize
from vocabshift.surgery.matrices import Table
from vocabshift.surgery.token_map import TokenMap

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
