"""Model or tokenizer? What a folder, file or Hub name holds, told by its files.

Owns the question whether there are weights, and how many and how large they are. Loads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vocabshift.models.shards import open_checkpoint

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SMALL_FILES = ("*.json", "*.jinja", "*.model", "LICENSE*", "NOTICE*")


def find_model(source: Any) -> Path | None:
    """The folder of a model, or None where `source` is a tokenizer.

    A model has weights beside a `config.json`. Of a Hub name the files are listed first, and
    fetched only where they are a model's; without a net the Hub's cache decides.
    """
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    try:
        if path.exists():
            names = (entry.name for entry in path.iterdir()) if path.is_dir() else ()
            return path if _is_model(names) else None
    except (OSError, ValueError):  # a name that no file can have
        return None
    return _from_hub(str(source))


def number_of_parameters(folder: Path) -> int | None:
    """As stored (a tied matrix once); None where the weights are not in safetensors."""
    checkpoint = open_checkpoint(folder)
    if checkpoint is None:
        return None
    return sum(math.prod(stored.shape) for _, stored in checkpoint.tensors.values())


def size_of_weights(folder: Path) -> int:
    """Bytes of the files that hold them; of two formats, those of safetensors."""
    checkpoint = open_checkpoint(folder)
    if checkpoint is not None:
        return sum(shard.n_bytes for shard in checkpoint.shards)
    return sum(file.stat().st_size for file in folder.glob(WEIGHTS[1]))


def _is_model(names: Iterable[str]) -> bool:
    found = list(names)
    has_weights = any(fnmatch(name, pattern) for name in found for pattern in WEIGHTS)
    return "config.json" in found and has_weights


def _from_hub(name: str) -> Path | None:
    try:
        from huggingface_hub import list_repo_files, snapshot_download

        try:
            names = [file for file in list_repo_files(name) if "/" not in file]
        except Exception:  # no net, or no such name: what is in the cache is asked
            folder = Path(snapshot_download(name, local_files_only=True))
            return find_model(folder)
        if not _is_model(names):
            return None
        weights = WEIGHTS[0] if any(fnmatch(file, WEIGHTS[0]) for file in names) else WEIGHTS[1]
        return Path(
            snapshot_download(name, allow_patterns=[weights, *_SMALL_FILES], ignore_patterns="*/*")
        )
    except Exception:  # whatever the Hub client raises: loading the tokenizer says it in its words
        return None
