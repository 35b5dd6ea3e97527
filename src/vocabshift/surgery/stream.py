"""The output folder of a saved model, written without loading the model.

Owns the order of its files: small ones first, so that what AutoTokenizer refuses is known before
gigabytes are written. How shards are written `stream` knows; what becomes of rows and ids a plan
says (`transfer_plan`), or whoever undoes one (`back`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from vocabshift.models import folder as model_folder
from vocabshift.models import shard_writer
from vocabshift.models.folder import TransferReport, serving_notes
from vocabshift.models.saved import SavedModel
from vocabshift.models.shards import INDEX, Checkpoint, Shard
from vocabshift.models.tables import Table
from vocabshift.storage.output import CHECKPOINTS, atomic_folder
from vocabshift.storage.provenance import write_provenance
from vocabshift.surgery import config_ids, folder_config
from vocabshift.surgery import row_sources as transfer_map
from vocabshift.surgery.plan import Plan
from vocabshift.surgery.rows import new_table
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

# The shards of a saved model written under new rows: only tables are made, the rest is copied.
#
# Owns which file of the output comes from what, the room that it takes, and going on from a run
# that was killed. What becomes of rows and ids is planned elsewhere; nothing here differs from the
# work in memory but where rows lie.


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


def _write_table(table: Table, fill: Fill, width: int, descriptor: int, start: int) -> None:
    from vocabshift.models.mapped_tensor import FileRows

    assert width == table.weight.shape[1] * table.weight.element_size()
    fill(table, FileRows(descriptor, start))


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


# ---


@dataclass(frozen=True, eq=False)
class RowSource:
    """Who writes the rows of a table, and all that this depends on."""

    fill: Fill
    decisions: tuple[Any, ...]  # a run that was killed is told from another one by these


@dataclass(frozen=True, eq=False)
class SmallFiles:
    """What the files beside the shards say."""

    tokenizer: Tokenizer | UnigramOrWordPieceTokenizer
    changes: list[config_ids.Change]
    move: Callable[[int], int | None]  # old id -> new id, None for a token that is gone
    id_map: TokenIdMap | None
    config: Mapping[str, Any]  # as given, for `vocabshift.json`


def write_streamed(
    saved: SavedModel,
    plan: Plan,
    out: Path,
    config: Mapping[str, Any],
    *,
    force: bool,
    hard_links: bool,
    resume: bool,
    dry_run: bool,
) -> TransferReport:
    """Write what a plan makes of a saved model."""
    made, rows = plan.method, plan.report.rows

    def fill(table: Table, rows_out: Any) -> Any:
        return new_table(
            table, made.input, made.init, rows, seed=made.seed, head_map=made.head, out=rows_out
        )

    arrays = [
        array
        for each in (made.input, made.head)
        for array in (each.copied_from, each.copied_to, each.made, *each.mixture)
    ]
    return write_folder(
        saved,
        RowSource(fill, (*arrays, made.init, made.seed)),
        SmallFiles(plan.tokenizer, plan.changes, plan.move, plan.id_map, config),
        out,
        plan.report,
        force=force,
        hard_links=hard_links,
        resume=resume,
        dry_run=dry_run,
    )


def write_folder(
    saved: SavedModel,
    source: RowSource,
    small: SmallFiles,
    out: Path,
    report: TransferReport,
    *,
    force: bool,
    hard_links: bool = False,
    resume: bool = True,
    dry_run: bool = False,
) -> TransferReport:
    """Write the folder, with `report.rows` rows in each table; the report with sizes and files."""
    rows = report.rows
    shards = plan_shards(saved, rows, source.fill)
    report = replace(
        report,
        bytes_before=sum(shard.n_bytes for shard in saved.checkpoint.shards),
        bytes_after=sum(shard.n_bytes for shard in shards),
        files={
            shard.name: "rewrite" if shard.changed else "link" if hard_links else "copy"
            for shard in shards
        },
    )
    check_space(out, shards, hard_links=hard_links)
    if dry_run:
        return report
    key = transfer_key(saved, *source.decisions, rows)
    with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as partial:
        written = _write_small(saved, small, partial, rows)
        done = write_shards(saved, shards, partial, key, hard_links=hard_links)
        report = replace(report, files=done | dict.fromkeys(written, "written"))
        figures = asdict(report) | {"notes": serving_notes(small.tokenizer)}
        write_provenance(partial, "transfer", small.config, figures)
    return report


def _write_small(saved: SavedModel, small: SmallFiles, partial: Path, rows: int) -> list[str]:
    """All but the shards; the names of processors and licences among them."""
    tied = saved.matrices.tied if saved.has_head else None
    folder_config.write_configs(
        saved.folder, partial, saved.config, small.changes, n_rows=rows, tied=tied
    )
    model_folder.write_old_rope_keys(partial / "config.json")
    written = folder_config.write_processors(saved.folder, partial, small.move)
    model_folder.write_tokenizer(small.tokenizer, partial, saved.config.model_type)
    if small.id_map is not None:
        small.id_map.save(partial, transfer_map.FILE)
    return written
