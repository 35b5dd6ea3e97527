"""Transfer back: give a model its first tokenizer again, and keep what it has learned since.

Owns the source of each row: a token that both tokenizers have gets the current model's row; any
other token, and padding, gets the first model's. Ids, padding and configs are those of the first
model. Without training in between, all tensors equal the first model's, bit for bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vocabshift.errors import VocabMismatchError
from vocabshift.models.folder import check_paths, load_own_tokenizer, local_folder
from vocabshift.models.load import load_model
from vocabshift.models.saved import SavedModel, check_whole, open_saved
from vocabshift.models.tables import Matrices, Table, block_length, find_matrices
from vocabshift.surgery import config_ids
from vocabshift.surgery.matching import TRANSFER_MAP, check_kinds, match
from vocabshift.surgery.output import SmallFiles, TableFill, write_folder, write_loaded
from vocabshift.surgery.report import TransferReport
from vocabshift.surgery.rows import put_rows
from vocabshift.surgery.special_ids import match_specials, roles_of_config
from vocabshift.surgery.stream import transfer_key
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, ids_of_tokens
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.id_map import load as load_id_map

BACK = "back"


def transfer_back_folder(
    model_source: str | Path,
    initial: str | Path,
    out: str | Path,
    *,
    force: bool = False,
) -> TransferReport:
    """Give a transferred (and perhaps trained) model the tokenizer that `initial` has.

    `model_source`: a folder that `transfer` wrote, or what training made of it, with its tokenizer;
    `initial`: the model that was transferred. The `transfer_map.json` in `model_source` says which
    tokens were kept; without it, bytes and roles decide, as in `transfer_folder`. In the report
    `n_copied` counts rows of the current model, `n_initialized` rows of `initial`, `n_removed`
    tokens of the current tokenizer that are dropped. Safetensors shards are streamed as in
    `transfer_folder`; models in other formats are loaded whole. VocabMismatchError if the two
    models do not belong together; neither is changed.
    """
    check_paths(model_source, initial, out=out, force=force)
    current = load_own_tokenizer(model_source)
    first = load_own_tokenizer(initial)
    old: Any = open_saved(initial)
    if old is None:
        old = load_model(initial)
    old_tables = _tables_of(old)
    kept = _kept_ids(model_source, old, first, current)
    saved = open_saved(model_source)
    if saved is None:
        check_whole(model_source)
    model: Any = load_model(model_source) if saved is None else saved
    matrices = _tables_of(model)
    _check_pair(matrices, old_tables, kept)
    changes = config_ids.taken_over(model, old)
    report = TransferReport(
        n_copied=len(kept),
        n_initialized=len(ids_of_tokens(first)) - len(kept),
        n_removed=len(ids_of_tokens(current)) - len(set(kept.values())),
        tied=matrices.tied,
        vocab_size=len(ids_of_tokens(first)),
        rows=old_tables.rows,
        old_rows=matrices.rows,
        init=BACK,
        special_ids=config_ids.moved_ids(changes),
        n_moved=sum(old_id != new_id for old_id, new_id in kept.items()),
    )
    config = {"model": str(model_source), "initial": str(initial), "back": True}
    pairs = dict(zip(matrices.tables, old_tables.tables, strict=True))

    def fill(table: Table, out: Any) -> Any:
        return _rows_back(table, pairs[table], kept, report.rows, out)

    back = {new_id: old_id for old_id, new_id in kept.items()}
    small = SmallFiles(first, changes, back.get, None, config)
    if saved is not None:
        filled = TableFill(fill, (*_said_by(old), sorted(kept.items()), BACK))
        return write_folder(saved, filled, small, Path(out), report, force=force)
    import torch

    with torch.no_grad():
        for table in matrices.tables:
            new = torch.empty(
                (report.rows + table.beyond, table.weight.shape[1]), dtype=table.weight.dtype
            )
            put_rows(model, table, fill(table, new))
    config_ids.apply(model, changes, report.rows)
    return write_loaded(model, local_folder(model_source), small, out, report, force=force)


def _tables_of(model: Any) -> Matrices:
    return model.matrices if isinstance(model, SavedModel) else find_matrices(model)


def _said_by(model: Any) -> tuple[str, ...]:
    """What distinguishes the initial model from another one; of one in memory nothing is known."""
    return (transfer_key(model.checkpoint),) if isinstance(model, SavedModel) else ()


def _kept_ids(
    model_source: str | Path,
    old: Any,
    first: AnyTokenizer,
    current: AnyTokenizer,
) -> dict[int, int]:
    """First id -> current id of every token that both have."""
    file = Path(model_source) / TRANSFER_MAP
    if file.is_file():
        id_map = load_id_map(file)
        if not check_kinds(first, current, id_map):
            id_map.check(first, current)
        return {old_id: new_id for new_id, old_id in id_map.new_to_old().items()}
    if not first.kind == current.kind == "BPE":
        raise VocabMismatchError(
            f"{model_source} holds no {TRANSFER_MAP}, and without it nothing is known"
        )
    ours, theirs = as_tokenizer(first), as_tokenizer(current)
    specials = match_specials(ours, theirs, roles_of_config(old.config))
    if specials.tokenizer.row_count != current.row_count:
        raise VocabMismatchError(
            "the model's tokenizer lacks special tokens of the initial one, so that is not the "
            "model that was transferred; name that one with --initial"
        )
    return match(ours, theirs, specials.new_to_old).old_to_new


def _check_pair(matrices: Matrices, old_tables: Matrices, kept: dict[int, int]) -> None:
    def kinds(each: Matrices) -> list[tuple[str, int]]:
        return [(table.role, int(table.weight.shape[1])) for table in each.tables]

    if kinds(matrices) != kinds(old_tables) or matrices.tied != old_tables.tied:
        raise VocabMismatchError(
            f"the tables of the model {kinds(matrices)} and of the initial model "
            f"{kinds(old_tables)} (role, width) do not match; name the model that was transferred"
        )
    for table, rows in (
        *((table, max(kept.values(), default=-1) + 1) for table in matrices.tables[:1]),
        *((table, max(kept, default=-1) + 1) for table in old_tables.tables[:1]),
    ):
        if table.rows < rows:
            raise VocabMismatchError(
                f"the {table.called} of a model: {table.rows} rows, but its tokenizer needs {rows}"
            )


def _rows_back(table: Table, old_table: Table, kept: dict[int, int], n_rows: int, out: Any) -> Any:
    """Write the rows of one table, block by block, to `out`; `kept`: initial id -> current id."""
    import torch

    n = n_rows + table.beyond
    current = torch.full((n,), -1, dtype=torch.int64)
    for old_id, new_id in kept.items():
        if old_id < min(n, old_table.rows) and new_id < table.rows:
            current[old_id] = new_id
    for ids in torch.split(torch.arange(n), block_length(table.weight.shape[1])):
        # Tokens beyond the end of a per-layer table have the row of token 0 (`follows_row_0`).
        there = torch.where(ids < old_table.rows, ids, 0)
        rows = old_table.weight.index_select(0, there).to(table.weight.dtype)
        own = current[ids]
        rows[own >= 0] = table.weight.index_select(0, own[own >= 0])
        out.index_copy_(0, ids, rows)
    return out
