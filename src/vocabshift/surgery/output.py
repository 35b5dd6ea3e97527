"""The folder of a transferred model: small files under new ids, shards, provenance.

Owns the order of its files (small ones first, so that an error of AutoTokenizer is found before
gigabytes are written), what is reported of each file of the folder before, and how a planned
`config_ids.Change` is written into raw JSON, where keys unknown to this version of transformers
stay as they are. `contents` knows which files stay with a model, `stream` writes the shards; the
caller decides about rows and ids.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vocabshift.models.contents import (
    CONFIG,
    ENCODER,
    WEIGHTS,
    WRAPPER_CONFIG,
    WRITTEN,
    Contents,
    config_file,
    read_contents,
)
from vocabshift.models.folder import write_model, write_old_rope_keys, write_tokenizer
from vocabshift.models.saved import SavedModel
from vocabshift.models.shards import INDEX
from vocabshift.models.tables import VOCAB_KEYS, config_parts
from vocabshift.storage.outcome import write_provenance
from vocabshift.storage.output import CHECKPOINTS, atomic_folder
from vocabshift.surgery import config_ids
from vocabshift.surgery.matching import TRANSFER_MAP
from vocabshift.surgery.report import TransferReport, serving_notes
from vocabshift.surgery.stream import Fill, check_space, plan_shards, transfer_key, write_shards
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.id_map import TokenIdMap

Companions = Mapping[str, Any]
"""File that stays with the model -> what is in it now, or None where that is the same."""


@dataclass(frozen=True, eq=False)
class TableFill:
    """A function that writes the rows of a table, and everything that it depends on."""

    fill: Fill
    decisions: tuple[Any, ...]  # what distinguishes a killed run from another one


Learn = Callable[[Path], tuple[TableFill, dict[str, Any]]]
"""Folder for checkpoints -> learned rows, and figures about them."""


@dataclass(frozen=True, eq=False)
class SmallFiles:
    """What the files other than the shards say."""

    tokenizer: AnyTokenizer
    changes: list[config_ids.Change]
    move: Callable[[int], int | None]  # old id -> new id, None for a token that is gone
    id_map: TokenIdMap | None
    config: Mapping[str, Any]  # as given, for `vocabshift.json`


def write_loaded(
    model: Any,
    source: Path,
    small: SmallFiles,
    out: str | Path,
    report: TransferReport,
    *,
    force: bool,
    dry_run: bool = False,
) -> TransferReport:
    """Write a changed model in memory and its tokenizer as one folder; the report with its files.

    `source`: the folder that the model was loaded from. InvalidTokenizerError where AutoTokenizer
    gives other ids than the tokenizer; `out` is then left as it was.
    """
    found = ([file.name for file in sorted(source.glob(f"{kind}*"))] for kind in WEIGHTS)
    weights = next(filter(None, found), [])
    contents = read_contents(source, weights)
    companions = move_companions(contents, small, (report.old_rows, report.rows))
    planned = dict.fromkeys(weights, "rewrite as safetensors") | _planned(contents, companions)
    report = replace(report, files=planned, left_out=contents.left_out)
    if dry_run:
        return report
    with atomic_folder(out, force=force) as partial:
        write_model(model, small.tokenizer, partial)
        done = _write_companions(contents, companions, partial)
        done |= dict.fromkeys(weights, "rewritten as safetensors")
        done |= {file.name: "written" for file in sorted(partial.glob(f"{WEIGHTS[0]}*"))}
        report = _finished(report, contents, partial, done)
        _write_about(partial, small, report)
    return report


def write_folder(
    saved: SavedModel,
    tables: TableFill,
    small: SmallFiles,
    out: Path,
    report: TransferReport,
    *,
    force: bool,
    hard_links: bool = False,
    resume: bool = True,
    dry_run: bool = False,
    learn: Learn | None = None,
) -> TransferReport:
    """Write the folder, with `report.rows` rows in each table; the report with sizes and files.

    `learn` gives other rows for the tables, after everything else was checked.
    """
    rows = report.rows
    shards = plan_shards(saved, rows, tables.fill)
    index = () if saved.checkpoint.index is None else (INDEX,)
    contents = read_contents(saved.folder, (*index, *(shard.name for shard in shards)))
    companions = move_companions(contents, small, (report.old_rows, rows))
    planned = {
        shard.name: "rewrite" if shard.changed else "link" if hard_links else "copy"
        for shard in shards
    }
    report = replace(
        report,
        bytes_before=sum(shard.n_bytes for shard in saved.checkpoint.shards),
        bytes_after=sum(shard.n_bytes for shard in shards),
        files=planned | dict.fromkeys(index, "write") | _planned(contents, companions),
        left_out=contents.left_out,
    )
    check_space(out, shards, hard_links=hard_links, n_bytes=contents.n_bytes)
    if dry_run:
        return report
    with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as partial:
        _write_small(saved, small, partial, (report.old_rows, rows))
        written = _write_companions(contents, companions, partial)
        if learn is not None:
            tables, figures = learn(partial / CHECKPOINTS)
            shards = plan_shards(saved, rows, tables.fill)
            report = replace(report, distilled=figures)
        key = transfer_key(saved.checkpoint, *tables.decisions, rows)
        done = write_shards(saved.checkpoint, shards, partial, key, hard_links=hard_links)
        report = _finished(report, contents, partial, done | written)
        _write_about(partial, small, report)
    return report


def _write_small(
    saved: SavedModel, small: SmallFiles, partial: Path, rows: tuple[int, int]
) -> None:
    """The configs and the tokenizer."""
    tied = saved.matrices.tied if saved.has_head else None
    write_configs(saved.folder, partial, saved.config, small, rows=rows, tied=tied)
    if (partial / CONFIG).is_file():
        write_old_rope_keys(partial / CONFIG)
    write_tokenizer(small.tokenizer, partial, saved.config.model_type)


def _planned(contents: Contents, companions: Companions) -> dict[str, str]:
    """What will be done with the files other than the weights."""
    here = {name: "write" for name in WRITTEN if (contents.folder / name).is_file()}
    stay = {name: "copy" if data is None else "write" for name, data in companions.items()}
    return here | stay


def _finished(
    report: TransferReport, contents: Contents, partial: Path, done: dict[str, str]
) -> TransferReport:
    """The report of the folder that was written: `done`, and the files that were made anew."""
    made = {name: "written" for name in WRITTEN if (partial / name).is_file()}
    lost = [
        name
        for name in WRITTEN
        if (contents.folder / name).is_file() and not (partial / name).is_file()
    ]
    left_out = contents.left_out | dict.fromkeys(lost, "the new tokenizer has none")
    return replace(report, files=done | made, left_out=left_out)


def _write_about(partial: Path, small: SmallFiles, report: TransferReport) -> None:
    """`transfer_map.json`, and what was done, for `vocabshift.json`."""
    if small.id_map is not None:
        small.id_map.save(partial, TRANSFER_MAP)
    figures = asdict(report) | {"notes": serving_notes(small.tokenizer)}
    write_provenance(partial, "transfer", small.config, figures)


def write_configs(
    source: Path,
    target: Path,
    config: Any,
    small: SmallFiles,
    *,
    rows: tuple[int, int],
    tied: bool | None,
) -> None:
    """Write config.json and, where there is one, generation_config.json with the planned ids.

    `config`: what transformers read; `rows`: old and new; `tied`: None where the model has no head.
    """
    file = config_file(source)
    whole = raw = _read(file)
    if file.name == WRAPPER_CONFIG:
        raw = whole[ENCODER]
    generation = _read(source / "generation_config.json")
    for change in small.changes:
        part = generation if change.section == "generation_config" else raw
        if change.section == "text_config":
            part = _at(raw, config_ids.text_path(config))
        if part is not None and (change.key in part or change.new is not None):
            part[change.key] = change.new
    for place, part in enumerate(config_parts(config)):
        raw_part = _at(raw, config_ids.text_path(config) if place else ())
        for key in VOCAB_KEYS:
            if isinstance(vars(part).get(key), int):
                raw_part[key] = rows[1]
        if tied is not None and raw_part.get("tie_word_embeddings", not tied) != tied:
            is_said = place == 0 or "tie_word_embeddings" in raw_part
            if is_said and bool(getattr(config, "tie_word_embeddings", False)) != tied:
                raw_part["tie_word_embeddings"] = tied
    if raw is not whole:
        own = {key: value for key, value in whole.items() if not key.endswith(ENCODER)}
        whole |= config_ids.moved_json(own, small.move, rows)
    _write(target / file.name, whole)
    if (source / "generation_config.json").exists():
        known = {change.key for change in small.changes if change.section == "generation_config"}
        # What transformers does not read, as beside `_from_model_config`, other programs may.
        others = {key: value for key, value in generation.items() if key not in known}
        generation |= config_ids.moved_json(others, small.move, rows)
        _write(target / "generation_config.json", generation)


def move_companions(contents: Contents, small: SmallFiles, rows: tuple[int, int]) -> Companions:
    """What stays with the model, with the ids in it moved; ValueError for what is damaged."""
    moved: dict[str, Any] = dict.fromkeys(contents.copied)
    for name in contents.configs:
        file = contents.folder / name
        try:
            data = json.loads(file.read_bytes())
            after = config_ids.moved_json(data, small.move, rows)
        except RecursionError:
            raise ValueError(f"{file} is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{file} is damaged: {error}") from None
        moved[name] = None if after == data else after
    return moved


def _write_companions(contents: Contents, moved: Companions, target: Path) -> dict[str, str]:
    """File -> what was done."""
    for name in contents.folders:
        (target / name).mkdir(parents=True, exist_ok=True)
    for name, data in moved.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            shutil.copyfile(contents.folder / name, place)
        else:
            _write(place, data)
    return {name: "copied" if data is None else "written" for name, data in moved.items()}


def _at(raw: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    part = raw
    for key in path:
        part = part.setdefault(key, {})
    return part


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        data = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{file} holds no JSON object")
    return data


def _write(file: Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, ensure_ascii=False, indent=2, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")
