"""The tables of a model in memory under a new vocabulary: checked, sized, put in place.

Owns what is refused of old rows, how many rows there will be, and the parameters of a model that
get them. How rows are made `new_rows` knows.

transformers' `resize_token_embeddings` is not used: it would initialize every row once more, does
not grow the bias of a tied head, and follows the config's idea of tying instead of the tensors'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import initialize, tables
from vocabshift.surgery.matrices import Matrices, Table
from vocabshift.surgery.new_rows import new_table
from vocabshift.surgery.token_map import TokenMap

if TYPE_CHECKING:
    import torch

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
