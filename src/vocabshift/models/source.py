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
from vocabshift.tokenizer.formats.load import hub_error, is_hub_name

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SMALL_FILES = ("*.json", "*.jinja", "*.model", "LICENSE*", "NOTICE*")


def find_model(source: Any) -> Path | None:
    """The folder of a model, or None where `source` is a tokenizer.

    A model has weights beside a `config.json`. Of a Hub name the files are listed first, and
    fetched only where they are a model's; without a net the Hub's cache is asked.
    FileNotFoundError, with the reason, where a download fails.
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
    """The downloaded folder of a model, or None where the repository holds no weights.

    FileNotFoundError with the reason where the Hub cannot be asked or a file does not arrive: a
    failed download must never pass for a repository without weights.
    """
    if not is_hub_name(name):
        return None
    from huggingface_hub import list_repo_files, snapshot_download
    from huggingface_hub.errors import HFValidationError, OfflineModeIsEnabled

    try:
        names = [file for file in list_repo_files(name) if "/" not in file]
    except HFValidationError:  # no repository can have this name
        return None
    except OfflineModeIsEnabled:  # by the user's wish the cache alone decides
        return _from_cache(name)
    except Exception as error:  # the Hub client raises errors of many libraries
        folder = _from_cache(name)
        if folder is None:
            raise hub_error(name, "tell whether it is a model", error) from None
        return folder
    if not _is_model(names):
        return None
    weights = WEIGHTS[0] if any(fnmatch(file, WEIGHTS[0]) for file in names) else WEIGHTS[1]
    try:
        folder = Path(
            snapshot_download(name, allow_patterns=[weights, *_SMALL_FILES], ignore_patterns="*/*")
        )
    except Exception as error:  # as above
        raise hub_error(name, "give its weights", error) from None
    if find_model(folder) is None:  # the client falls back to its cache where a connection breaks
        raise hub_error(name, "give its weights", OSError(f"they are not in {folder}"))
    return folder


def _from_cache(name: str) -> Path | None:
    """The model in the Hub client's cache; None where the cache knows of no weights.

    FileNotFoundError where the cache knows that there are weights and does not hold them.
    """
    from huggingface_hub import errors, snapshot_download

    incomplete = getattr(errors, "IncompleteSnapshotError", ())  # since huggingface_hub 2
    lacking = None
    for weights in WEIGHTS:
        try:
            # By name: a snapshot lacks whatever nobody asked for, such as a README.
            wanted = ["config.json", weights]
            folder = snapshot_download(
                name, allow_patterns=wanted, ignore_patterns="*/*", local_files_only=True
            )
        except incomplete as error:
            lacking = error
        except errors.LocalEntryNotFoundError:
            pass
        else:
            found = find_model(folder)
            if found is not None:
                return found
    if lacking is not None:
        raise hub_error(name, "give its weights", lacking)
    return None
