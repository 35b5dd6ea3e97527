"""Files of the Hugging Face Hub: the only place that downloads.

Owns which names a repository can have and the error of a failed download. It is on the lowest
layer because `tokenizer` and `models` above it both read from the Hub. `report/hub.py` uploads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_NAME = re.compile(
    r"(?!.*(?:--|\.\.|\.git$))(?=.{1,96}$)[A-Za-z0-9](?:[\w.-]*\w)?(?:/[A-Za-z0-9](?:[\w.-]*\w)?)?"
)
_FILE_SUFFIXES = {".json", ".model", ".gguf", ".tiktoken", ".txt", ".bin"}


def is_hub_name(source: str | Path) -> bool:
    """Whether a Hub repository can have this name; False for file names."""
    name = str(source)
    return Path(name).suffix not in _FILE_SUFFIXES and bool(_NAME.fullmatch(name))


def hub_error(name: str, wanted: str, error: Exception) -> FileNotFoundError:
    """The error of a failed download, in one line: "the Hub does not `wanted`", and the reason."""
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    return FileNotFoundError(
        f"{name} is no file or folder here, and the Hub does not {wanted}: {reason}"
    )


def download(
    name: str, patterns: Iterable[str], *, wanted: str = "give it", nested: bool = True
) -> Path:
    """Download the matching files of a repository; return the folder that holds them.

    `nested`: also files in folders of the repository. FileNotFoundError with the reason if no
    repository can have this name or the download fails.
    """
    if not is_hub_name(name):
        raise FileNotFoundError(f"{name[:200]} does not exist")
    from huggingface_hub import snapshot_download

    skipped = None if nested else ["*/*"]
    try:
        return Path(snapshot_download(name, allow_patterns=[*patterns], ignore_patterns=skipped))
    except Exception as error:  # the Hub client passes on errors of many libraries
        raise hub_error(name, wanted, error) from None


def list_files(name: str, *, wanted: str) -> list[str] | None:
    """List the files at the top level of a repository.

    None if the user works offline (`HF_HUB_OFFLINE`), because then only the cache is available.
    FileNotFoundError with the reason if the Hub cannot be reached.
    """
    from huggingface_hub import list_repo_files
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        return [file for file in list_repo_files(name) if "/" not in file]
    except OfflineModeIsEnabled:
        return None
    except Exception as error:  # the Hub client passes on errors of many libraries
        raise hub_error(name, wanted, error) from None


def cached(name: str, patterns: Iterable[str], *, wanted: str) -> Path | None:
    """The folder of matching files in the Hub client's cache; None if the cache knows of none.

    FileNotFoundError if the cache knows that the repository has them but does not hold them.
    """
    from huggingface_hub import errors, snapshot_download

    incomplete = getattr(errors, "IncompleteSnapshotError", ())  # since huggingface_hub 2
    try:
        return Path(
            snapshot_download(
                name, allow_patterns=[*patterns], ignore_patterns=["*/*"], local_files_only=True
            )
        )
    except incomplete as error:
        raise hub_error(name, wanted, error) from None
    except errors.LocalEntryNotFoundError:
        return None
