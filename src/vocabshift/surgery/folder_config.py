"""The JSON files of a model folder under new ids: configs, processors, licences.

Owns which files follow the weights and how a planned `config_ids.Change` is written into raw JSON,
where keys that this transformers does not know stay as they are. Which ids move `config_ids` knows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vocabshift.models.tables import VOCAB_KEYS, config_parts
from vocabshift.surgery import config_ids

PROCESSORS = (
    "processor_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "chat_template.json",
)
"""Files that may hold ids, sizes of images, or (once) a processor's chat template; no code."""

_LEGAL = ("LICENSE*", "LICENCE*", "NOTICE*", "*POLICY*", "COPYING*")


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
    """Copy processor configs with their ids moved, and licences; the names of what was written."""
    written = []
    for name in PROCESSORS:
        if (source / name).is_file():
            try:
                _write(target / name, config_ids.moved_json(_read(source / name), move))
            except RecursionError:
                raise ValueError(f"{source / name} is nested too deeply") from None
            written.append(name)
    for file in sorted(source.iterdir()):
        if file.is_file() and any(fnmatch(file.name, pattern) for pattern in _LEGAL):
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
