"""The folder of a transferred model: small files under new ids, shards, provenance.

Owns the order of its files (small ones first, so that an error of AutoTokenizer is found before
gigabytes are written), the list of files that are copied, and how a planned `config_ids.Change` is
written into raw JSON, where keys unknown to this version of transformers stay as they are. `stream`
writes the shards; the caller decides about rows and ids.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vocabshift.models.folder import write_model, write_old_rope_keys, write_tokenizer
from vocabshift.models.quantized import FILES
from vocabshift.models.saved import SavedModel
from vocabshift.models.tables import VOCAB_KEYS, config_parts
from vocabshift.storage.outcome import write_provenance
from vocabshift.storage.output import atomic_folder
from vocabshift.surgery import config_ids
from vocabshift.surgery.matching import TRANSFER_MAP
from vocabshift.surgery.report import TransferReport, serving_notes
from vocabshift.surgery.stream import Fill, check_space, plan_shards, transfer_key, write_shards
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

PROCESSORS = (
    "processor_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "chat_template.json",
)
"""Files that may hold ids, sizes of images, or (once) a processor's chat template; no code."""

_LEGAL = ("LICENSE*", "LICENCE*", "NOTICE*", "*POLICY*", "COPYING*")


@dataclass(frozen=True, eq=False)
class TableFill:
    """A function that writes the rows of a table, and everything that it depends on."""

    fill: Fill
    decisions: tuple[Any, ...]  # what distinguishes a killed run from another one


@dataclass(frozen=True, eq=False)
class SmallFiles:
    """What the files other than the shards say."""

    tokenizer: Tokenizer | UnigramOrWordPieceTokenizer
    changes: list[config_ids.Change]
    move: Callable[[int], int | None]  # old id -> new id, None for a token that is gone
    id_map: TokenIdMap | None
    config: Mapping[str, Any]  # as given, for `vocabshift.json`


def write_loaded(
    model: Any,
    tokenizer: Tokenizer | UnigramOrWordPieceTokenizer,
    out: str | Path,
    report: TransferReport,
    *,
    force: bool,
    config: Mapping[str, Any],
    id_map: TokenIdMap | None = None,
) -> TransferReport:
    """Write a changed model in memory and its tokenizer as one folder; the report.

    InvalidTokenizerError where AutoTokenizer gives other ids than the tokenizer; `out` is then
    left as it was. `id_map` is written as `transfer_map.json`.
    """
    with atomic_folder(out, force=force) as partial:
        write_model(model, tokenizer, partial)
        _write_about(partial, tokenizer, id_map, config, report)
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
) -> TransferReport:
    """Write the folder, with `report.rows` rows in each table; the report with sizes and files."""
    rows = report.rows
    shards = plan_shards(saved, rows, tables.fill)
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
    key = transfer_key(saved, *tables.decisions, rows)
    with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as partial:
        written = _write_small(saved, small, partial, rows)
        done = write_shards(saved, shards, partial, key, hard_links=hard_links)
        report = replace(report, files=done | dict.fromkeys(written, "written"))
        _write_about(partial, small.tokenizer, small.id_map, small.config, report)
    return report


def _write_small(saved: SavedModel, small: SmallFiles, partial: Path, rows: int) -> list[str]:
    """All but the shards; the names of those that `write_processors` writes."""
    tied = saved.matrices.tied if saved.has_head else None
    write_configs(saved.folder, partial, saved.config, small.changes, n_rows=rows, tied=tied)
    write_old_rope_keys(partial / "config.json")
    written = write_processors(saved.folder, partial, small.move)
    write_tokenizer(small.tokenizer, partial, saved.config.model_type)
    return written


def _write_about(
    partial: Path,
    tokenizer: Tokenizer | UnigramOrWordPieceTokenizer,
    id_map: TokenIdMap | None,
    config: Mapping[str, Any],
    report: TransferReport,
) -> None:
    """`transfer_map.json`, and what was done, for `vocabshift.json`."""
    if id_map is not None:
        id_map.save(partial, TRANSFER_MAP)
    figures = asdict(report) | {"notes": serving_notes(tokenizer)}
    write_provenance(partial, "transfer", config, figures)


def write_configs(
    source: Path,
    target: Path,
    config: Any,
    changes: Iterable[config_ids.Change],
    *,
    n_rows: int,
    tied: bool | None,
) -> None:
    """Write config.json and, where there is one, generation_config.json with the planned ids.

    `config`: what transformers read; `tied`: None where the model has no head.
    """
    raw = _read(source / "config.json")
    generation = _read(source / "generation_config.json")
    for change in changes:
        part = generation if change.section == "generation_config" else raw
        if change.section == "text_config":
            part = _at(raw, text_path(config))
        if part is not None and (change.key in part or change.new is not None):
            part[change.key] = change.new
    for place, part in enumerate(config_parts(config)):
        raw_part = _at(raw, text_path(config) if place else ())
        for key in VOCAB_KEYS:
            if isinstance(vars(part).get(key), int):
                raw_part[key] = n_rows
        if tied is not None and raw_part.get("tie_word_embeddings", not tied) != tied:
            is_said = place == 0 or "tie_word_embeddings" in raw_part
            if is_said and bool(getattr(config, "tie_word_embeddings", False)) != tied:
                raw_part["tie_word_embeddings"] = tied
    _write(target / "config.json", raw)
    if (source / "generation_config.json").exists():
        _write(target / "generation_config.json", generation)


def write_processors(source: Path, target: Path, move: Callable[[int], int | None]) -> list[str]:
    """Copy processor configs with their ids moved, licences and the files of quantizers.

    Returns the names of what was written.
    """
    written = []
    for name in PROCESSORS:
        if (source / name).is_file():
            try:
                _write(target / name, config_ids.moved_json(_read(source / name), move))
            except RecursionError:
                raise ValueError(f"{source / name} is nested too deeply") from None
            written.append(name)
    for file in sorted(source.iterdir()):
        if file.is_file() and any(fnmatch(file.name, pattern) for pattern in (*_LEGAL, *FILES)):
            shutil.copyfile(file, target / file.name)
            written.append(file.name)
    return written


def text_path(config: Any) -> tuple[str, ...]:
    """Keys that lead from a config to its text part; empty where it is its own."""
    text = config.get_text_config()

    def search(part: Any, path: tuple[str, ...]) -> tuple[str, ...] | None:
        if part is text:
            return path
        for key, value in vars(part).items():
            if not key.startswith("_") and hasattr(value, "get_text_config"):
                found = search(value, (*path, key))
                if found is not None:
                    return found
        return None

    return search(config, ()) or ()


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
