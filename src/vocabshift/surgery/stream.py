"""Write the shards of a saved model with new rows: only tables are rewritten, the rest is copied.

Owns the source of each output file, the space that it takes, and resuming a killed run. The caller
passes a function for the rows, so the rows equal those of a transfer in memory.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vocabshift.models import shard_writer
from vocabshift.models.saved import SavedModel
from vocabshift.models.shards import INDEX, Checkpoint, Shard
from vocabshift.models.tables import Table
from vocabshift.storage.output import CHECKPOINTS

_SPARE = 32 << 20  # bytes that the other files may need

Fill = Callable[[Table, Any], Any]
"""(table, out) -> writes the table's new rows to `out`."""


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


def plan_shards(saved: SavedModel, n_rows: int, fill: Fill) -> list[ShardPlan]:
    """The plan for every shard if each table gets `n_rows` rows from `fill`."""
    new: dict[str, shard_writer.NewTable] = {}
    for table in saved.matrices.tables:
        for name in table.names:
            stored = saved.checkpoint.tensors[name][1]
            rows = n_rows + table.beyond
            shape = list(stored.shape)
            shape[table.dim] = rows
            n_bytes = rows * table.weight.shape[1] * table.weight.element_size()
            write = partial(_write_table, table, fill, rows)
            new[name] = shard_writer.NewTable(tuple(shape), n_bytes, write)
    plans = []
    for shard in saved.checkpoint.shards:
        changed = {tensor.name: new[tensor.name] for tensor in shard.tensors if tensor.name in new}
        size = shard_writer.layout(shard, changed).n_bytes if changed else shard.n_bytes
        plans.append(ShardPlan(shard, changed, size))
    return plans


def check_space(
    out: Path, plans: Iterable[ShardPlan], *, hard_links: bool, n_bytes: int = 0
) -> None:
    """OSError (ENOSPC) if the disk of `out` has no space for the shards and `n_bytes` more."""
    needed = sum(plan.n_bytes for plan in plans if plan.changed or not hard_links)
    needed += n_bytes + _SPARE
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
    checkpoint: Checkpoint,
    plans: list[ShardPlan],
    partial_folder: Path,
    key: str,
    *,
    hard_links: bool,
) -> dict[str, str]:
    """Write all shards and their index into `partial_folder`; file -> what was done with it.

    `key`: as for `finish_files`.
    """
    done = finish_files(
        {plan.name: partial(_write, plan, hard_links) for plan in plans}, partial_folder, key
    )
    index = _new_index(checkpoint, plans)
    if index is not None:
        (partial_folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
        done[INDEX] = "rewritten"
    return done


def _write(plan: ShardPlan, hard_links: bool, target: Path) -> str:
    if not plan.changed:
        return shard_writer.copy_file(plan.shard.file, target, hard_link=hard_links)
    shard_writer.write_shard(plan.shard, plan.changed, target)
    return "rewritten"


def finish_files(
    writers: Mapping[str, Callable[[Path], str]], partial_folder: Path, key: str
) -> dict[str, str]:
    """Write large files one by one into `partial_folder`; file -> what was done with it.

    Each is finished under `CHECKPOINTS` first, by `key`: a run with the same key that was killed
    resumes after the last finished one.
    """
    work = partial_folder / CHECKPOINTS
    work.mkdir(exist_ok=True)
    for entry in work.iterdir():
        if entry.is_file() and not entry.name.startswith(key):
            entry.unlink()  # of another run
    done = {}
    for name, write in writers.items():
        finished = work / f"{key}-{name}"
        if finished.exists():
            done[name] = "kept from the run before"
            continue
        unfinished = work / f".{name}"
        done[name] = write(unfinished)
        unfinished.rename(finished)
    for name in writers:
        (work / f"{key}-{name}").rename(partial_folder / name)
    return done


def transfer_key(checkpoint: Checkpoint, *decisions: Any) -> str:
    """Names one transfer: the same shards as now, and everything that decides about rows."""
    digest = hashlib.sha256()
    for shard in checkpoint.shards:
        about = shard.file.stat()
        digest.update(f"{shard.file.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    for decision in decisions:
        data = decision.tobytes() if hasattr(decision, "tobytes") else repr(decision).encode()
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:16]


def _write_table(table: Table, fill: Fill, n_rows: int, descriptor: int, start: int) -> None:
    import torch

    from vocabshift.models.mapped_tensor import FileRows

    out = FileRows(descriptor, start)
    if table.dim == 0:
        fill(table, out)
        return
    # In the file tokens are columns (MobileBERT's head), so the table is made in memory first.
    rows = torch.empty((n_rows, table.weight.shape[1]), dtype=table.weight.dtype)
    fill(table, rows)
    stored = rows.movedim(0, table.dim)
    out.index_copy_(0, torch.arange(len(stored)), stored)


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
