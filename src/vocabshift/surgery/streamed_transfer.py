"""The output folder of a saved model, written without loading the model.

Owns the order of its files: small ones first, so that what AutoTokenizer refuses is known before
gigabytes are written. How shards are written `stream` knows; what becomes of rows and ids a plan
says (`transfer_plan`), or whoever undoes one (`back`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vocabshift.bpe.id_map import IdMap
from vocabshift.bpe.plain_tokenizer import PlainTokenizer
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.output_folder import atomic_folder
from vocabshift.provenance import write_provenance
from vocabshift.surgery import config_ids, folder_config, model_folder, stream, transfer_map
from vocabshift.surgery.matrices import Table
from vocabshift.surgery.new_rows import new_table
from vocabshift.surgery.saved_model import SavedModel
from vocabshift.surgery.serving_notes import serving_notes
from vocabshift.surgery.transfer_plan import Plan
from vocabshift.surgery.transfer_report import TransferReport


@dataclass(frozen=True, eq=False)
class RowSource:
    """Who writes the rows of a table, and all that this depends on."""

    fill: stream.Fill
    decisions: tuple[Any, ...]  # a run that was killed is told from another one by these


@dataclass(frozen=True, eq=False)
class SmallFiles:
    """What the files beside the shards say."""

    tokenizer: Tokenizer | PlainTokenizer
    changes: list[config_ids.Change]
    move: Callable[[int], int | None]  # old id -> new id, None for a token that is gone
    id_map: IdMap | None
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
    shards = stream.plan_shards(saved, rows, source.fill)
    report = replace(
        report,
        bytes_before=sum(shard.n_bytes for shard in saved.checkpoint.shards),
        bytes_after=sum(shard.n_bytes for shard in shards),
        files={
            shard.name: "rewrite" if shard.changed else "link" if hard_links else "copy"
            for shard in shards
        },
    )
    stream.check_space(out, shards, hard_links=hard_links)
    if dry_run:
        return report
    key = stream.transfer_key(saved, *source.decisions, rows)
    with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as partial:
        written = _write_small(saved, small, partial, rows)
        done = stream.write_shards(saved, shards, partial, key, hard_links=hard_links)
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
