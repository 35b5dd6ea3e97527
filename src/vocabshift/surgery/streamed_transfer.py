"""The output folder of a saved model, written as a plan says, without loading the model.

Owns the order of its files: small ones first, so that what AutoTokenizer refuses is known before
gigabytes are written. How shards are written `stream` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vocabshift.output_folder import atomic_folder
from vocabshift.provenance import write_provenance
from vocabshift.surgery import folder_config, model_folder, stream, transfer_map
from vocabshift.surgery.matrices import Table
from vocabshift.surgery.new_rows import new_table
from vocabshift.surgery.saved_model import SavedModel
from vocabshift.surgery.serving_notes import serving_notes
from vocabshift.surgery.transfer_plan import Plan
from vocabshift.surgery.transfer_report import TransferReport


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
    """Write the output of a saved model without loading it."""
    made, rows = plan.method, plan.report.rows

    def fill(table: Table, rows_out: Any) -> Any:
        return new_table(
            table, made.input, made.init, rows, seed=made.seed, head_map=made.head, out=rows_out
        )

    shards = stream.plan_shards(saved, rows, fill)
    report = replace(
        plan.report,
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
    arrays = [
        array
        for each in (made.input, made.head)
        for array in (each.copied_from, each.copied_to, each.made, *each.mixture)
    ]
    key = stream.transfer_key(saved, *arrays, made.init, made.seed, rows)
    with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as partial:
        # The small files first: what AutoTokenizer refuses is known before gigabytes are written.
        tied = saved.matrices.tied if saved.has_head else None
        folder_config.write_configs(
            saved.folder, partial, saved.config, plan.changes, n_rows=rows, tied=tied
        )
        model_folder.write_old_rope_keys(partial / "config.json")
        written = folder_config.write_processors(saved.folder, partial, plan.move)
        model_folder.write_tokenizer(plan.tokenizer, partial, saved.config.model_type)
        plan.id_map.save(partial, transfer_map.FILE)
        done = stream.write_shards(saved, shards, partial, key, hard_links=hard_links)
        report = replace(report, files=done | dict.fromkeys(written, "written"))
        figures = asdict(report) | {"notes": serving_notes(plan.tokenizer)}
        write_provenance(partial, "transfer", config, figures)
    return report
