"""Folders transferred without loading the model: only tables are rewritten, the rest is copied.

Owns a saved model as a value (configs, checkpoint, tables over the mapped shards) and the writing
of its shards under new rows, block by block: memory does not grow with the model. What becomes of
rows and ids is planned elsewhere; nothing here differs from the work in memory but where rows lie.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import VocabMismatchError
from vocabshift.output_folder import CHECKPOINTS
from vocabshift.surgery import initialize, model_folder, resize, shard_writer, tables
from vocabshift.surgery.checkpoint import (
    FLOATS,
    INDEX,
    Checkpoint,
    Shard,
    open_checkpoint,
)

if TYPE_CHECKING:
    import torch

    from vocabshift.surgery.mapped_tensor import FileMapping

_SPARE = 32 << 20  # bytes that the other files may need

Fill = Callable[[resize.Table, Any], Any]
"""(table, out) -> writes the table's new rows to `out`."""


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model folder, read as far as a transfer needs it."""

    folder: Path
    checkpoint: Checkpoint
    config: Any
    generation_config: Any | None
    matrices: resize.Matrices  # tables over the mapped shards, by their names in the shards
    has_head: bool


@dataclass(frozen=True)
class ShardPlan:
    """One file of the output."""

    shard: Shard
    changed: dict[str, shard_writer.NewTable]
    n_bytes: int  # of the new file

    @property
    def name(self) -> str:
        """Of the file."""
        return self.shard.file.name


def open_saved(source: str | Path) -> SavedModel | None:
    """The model of a folder (or Hub name), or None where its weights are not in safetensors.

    ValueError for what cannot be transferred: quantized, of unknown architecture, damaged.
    """
    folder = _local(source)
    checkpoint = None if folder is None else open_checkpoint(folder)
    if folder is None or checkpoint is None:
        return None
    config, generation = model_folder.load_configs(folder)
    model_class = model_folder.model_class(config)
    known = tables.find_table_names(model_class, config)
    matrices = replace(
        _stored_tables(checkpoint, known),
        pad_is_fixed=tables.counts_positions_from_pad(model_class, config),
    )
    has_head = matrices.tied or any(table.role == "head" for table in matrices.tables)
    return SavedModel(folder, checkpoint, config, generation, matrices, has_head)


def plan_shards(saved: SavedModel, n_rows: int, fill: Fill) -> list[ShardPlan]:
    """What becomes of every shard when each table gets `n_rows` rows from `fill`."""
    new: dict[str, shard_writer.NewTable] = {}
    for table in saved.matrices.tables:
        for name in table.names:
            stored = saved.checkpoint.tensors[name][1]
            rows = n_rows + table.beyond
            shape = list(stored.shape)
            shape[table.dim] = rows
            width = table.weight.shape[1] * table.weight.element_size()
            write = partial(_write_table, table, fill, width)
            new[name] = shard_writer.NewTable(tuple(shape), rows * width, write)
    plans = []
    for shard in saved.checkpoint.shards:
        changed = {tensor.name: new[tensor.name] for tensor in shard.tensors if tensor.name in new}
        size = shard_writer.layout(shard, changed).n_bytes if changed else shard.n_bytes
        plans.append(ShardPlan(shard, changed, size))
    return plans


def check_space(out: Path, plans: Iterable[ShardPlan], *, hard_links: bool) -> None:
    """OSError (ENOSPC) where the disk of `out` has no room for the shards."""
    needed = sum(plan.n_bytes for plan in plans if plan.changed or not hard_links) + _SPARE
    place = out.absolute().parent
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"{out} needs {needed / 1e9:.2f} GB, and {place} has {free / 1e9:.2f} GB free; "
            "make room, name another output, or pass --hard-links for shards that do not change",
        )


def write_shards(
    saved: SavedModel, plans: list[ShardPlan], partial_folder: Path, key: str, *, hard_links: bool
) -> dict[str, str]:
    """Write all shards and their index into `partial_folder`; file -> what was done with it.

    Each is finished under `CHECKPOINTS` first, by `key`: a run of the same transfer that was
    killed goes on behind the last finished one.
    """
    work = partial_folder / CHECKPOINTS
    work.mkdir(exist_ok=True)
    for entry in work.iterdir():
        if not entry.name.startswith(key):
            entry.unlink()  # of another transfer
    done = {}
    for plan in plans:
        finished = work / f"{key}-{plan.name}"
        if finished.exists():
            done[plan.name] = "kept from the run before"
            continue
        unfinished = work / f".{plan.name}"
        if plan.changed:
            shard_writer.write_shard(plan.shard, plan.changed, unfinished)
            done[plan.name] = "rewritten"
        else:
            done[plan.name] = shard_writer.copy_file(
                plan.shard.file, unfinished, hard_link=hard_links
            )
        unfinished.rename(finished)
    for plan in plans:
        (work / f"{key}-{plan.name}").rename(partial_folder / plan.name)
    index = _new_index(saved.checkpoint, plans)
    if index is not None:
        (partial_folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
        done[INDEX] = "rewritten"
    return done


def transfer_key(saved: SavedModel, *decisions: Any) -> str:
    """Names one transfer: the same shards as now, and everything that decides about rows."""
    digest = hashlib.sha256()
    for shard in saved.checkpoint.shards:
        about = shard.file.stat()
        digest.update(f"{shard.file.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    for decision in decisions:
        data = decision.tobytes() if hasattr(decision, "tobytes") else repr(decision).encode()
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:16]


def _write_table(table: resize.Table, fill: Fill, width: int, descriptor: int, start: int) -> None:
    from vocabshift.surgery.mapped_tensor import FileRows

    assert width == table.weight.shape[1] * table.weight.element_size()
    fill(table, FileRows(descriptor, start))


def _stored_tables(checkpoint: Checkpoint, known: list[tables.TableName]) -> resize.Matrices:
    """The tables as they are stored; aliases of one table are one where their bytes are equal."""
    mappings: dict[Path, FileMapping] = {}
    found: list[resize.Table] = []
    lacking: list[str] = []
    tied = False
    places = _names_in_files(checkpoint, known)
    for table, names in zip(known, places, strict=True):
        own: list[resize.Table] = []
        for alias, name in names.items():
            role = "head" if table.role == "input" and alias in table.head_names else table.role
            tensor = _mapped(checkpoint, name, table, mappings)
            new = replace(resize.as_table(table, (name,), tensor), role=role)
            same = next((each for each in own if _equal(each, new)), None)
            if same is None:
                own.append(new)
            else:
                own[own.index(same)] = replace(same, names=(*same.names, name))
        if not own and not table.may_be_absent:
            lacking.append(table.names[0])
        if table.role == "input":
            # Two tensors under a tied config: transformers does not tie them, and neither do we.
            tied = bool(table.head_names) and len(own) == 1
            own = [replace(each, role="input") if tied else each for each in own]
        found += own
    if lacking:
        raise ValueError(
            f"the checkpoint {checkpoint.folder} lacks {len(lacking)} tensors of the model, such "
            f"as {lacking[0]}; they would be random"
        )
    found.sort(key=lambda table: table.role != "input")
    return resize.Matrices(tuple(found), tied)


def _names_in_files(checkpoint: Checkpoint, known: list[tables.TableName]) -> list[dict[str, str]]:
    """Of every table alias -> name in the shards, of the aliases that are stored.

    Names differ where a checkpoint was saved from another class (with or without a prefix) or by
    another transformers (wrappers; GPT-NeoX's `embed_out`): then the longest common ending
    decides, and at last the shape, where a single tensor that is nothing else has it.
    """
    places = [_same_ending(checkpoint, table) for table in known]
    taken = {name for names in places for name in names.values()}
    for table, names in zip(known, places, strict=True):
        if not names and not table.may_be_absent:
            fitting = [
                name
                for name, (_, stored) in checkpoint.tensors.items()
                if stored.shape == table.shape and name not in taken
            ]
            if len(fitting) == 1:
                names[table.names[0]] = fitting[0]
                taken.add(fitting[0])
    return places


def _same_ending(checkpoint: Checkpoint, table: tables.TableName) -> dict[str, str]:
    stored = checkpoint.tensors
    found = {alias: alias for alias in table.names if alias in stored}
    if found:
        return found
    for alias in table.names:
        parts = alias.split(".")
        for length in range(len(parts) - 1, 1, -1):
            ending = ".".join(parts[-length:])
            fitting = [name for name in stored if f".{name}".endswith(f".{ending}")]
            if len(fitting) == 1:
                found[alias] = fitting[0]
                break
    return found


def _mapped(
    checkpoint: Checkpoint,
    name: str,
    table: tables.TableName,
    mappings: dict[Path, FileMapping],
) -> torch.Tensor:
    import torch

    from vocabshift.surgery.mapped_tensor import FileMapping

    shard, stored = checkpoint.tensors[name]
    if stored.dtype not in FLOATS:
        raise ValueError(
            f"{name} is stored as {stored.dtype}, and rows of a quantized model cannot be "
            "averaged; transfer the unquantized checkpoint and quantize the result"
        )
    if stored.shape != table.shape:
        raise VocabMismatchError(
            f"{name} has {stored.shape[table.dim]} rows and config.json says {table.key} "
            f"{table.shape[table.dim] - table.beyond} (shapes {stored.shape}, {table.shape}); "
            "correct config.json first"
        )
    if shard.file not in mappings:
        mappings[shard.file] = FileMapping(shard.file)
    dtype = getattr(torch, FLOATS[stored.dtype])
    return mappings[shard.file].tensor(dtype, stored.shape, stored.start)


def _equal(one: resize.Table, other: resize.Table) -> bool:
    import torch

    first, second = one.weight, other.weight
    if first.dtype != second.dtype:
        return False
    length = initialize.block_length(first.shape[1])
    return all(
        torch.equal(first.index_select(0, ids), second.index_select(0, ids))
        for ids in torch.split(torch.arange(len(first)), length)
    )


def _new_index(checkpoint: Checkpoint, plans: list[ShardPlan]) -> dict[str, Any] | None:
    """The index with the new total sizes; None for a model in one file."""
    if checkpoint.index is None:
        return None
    index = dict(checkpoint.index)
    metadata = dict(index.get("metadata") or {})
    added = values = 0
    for plan in plans:
        for name, new in plan.changed.items():
            stored = checkpoint.tensors[name][1]
            added += new.n_bytes - (stored.stop - stored.start)
            values += math.prod(new.shape) - math.prod(stored.shape)
    for key, difference in (("total_size", added), ("total_parameters", values)):
        if isinstance(metadata.get(key), int):
            metadata[key] += difference
    return index | {"metadata": metadata}


def _local(source: str | Path) -> Path | None:
    """The folder itself, or the Hub's files in its cache."""
    path = Path(source)
    if path.is_dir():
        return path
    try:
        from huggingface_hub import snapshot_download

        patterns = ["*.safetensors", "*.json", "*.jinja", "LICENSE*", "NOTICE*"]
        return Path(
            snapshot_download(str(source), allow_patterns=patterns, ignore_patterns=["*/*"])
        )
    except Exception:  # whatever the Hub client raises: transformers then says it in its words
        return None
