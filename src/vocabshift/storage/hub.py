"""Files of the Hugging Face Hub: the one place that downloads.

Owns which names a repository can have and the error of a failed download. It lies on the lowest
floor because `tokenizer` and `models`, which both read from the Hub, lie above it. Uploads are
`report/hub.py`'s.
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
    """Whether a repository on the Hub can have this name; a file's name is none."""
    name = str(source)
    return Path(name).suffix not in _FILE_SUFFIXES and bool(_NAME.fullmatch(name))


def hub_error(name: str, wanted: str, error: Exception) -> FileNotFoundError:
    """The error of a failed download, in one line: "the Hub does not `wanted`", and why."""
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    return FileNotFoundError(
        f"{name} is no file or folder here, and the Hub does not {wanted}: {reason}"
    )


def download(
    name: str, patterns: Iterable[str], *, wanted: str = "give it", nested: bool = True
) -> Path:
    """The folder that holds the files of a repository that match; they are downloaded into it.

    `nested`: also files in folders of the repository. FileNotFoundError with the reason where no
    repository can have this name or the download fails.
    """
    if not is_hub_name(name):
        raise FileNotFoundError(f"{name[:200]} does not exist")
    from huggingface_hub import snapshot_download

    skipped = None if nested else ["*/*"]
    try:
        return Path(snapshot_download(name, allow_patterns=[*patterns], ignore_patterns=skipped))
    except Exception as error:  # the Hub client raises errors of many libraries
        raise hub_error(name, wanted, error) from None


def list_files(name: str, *, wanted: str) -> list[str] | None:
    """The files of a repository that lie in none of its folders.

    None where the user works offline (`HF_HUB_OFFLINE`), so that the cache is all there is.
    FileNotFoundError with the reason where the Hub cannot be asked.
    """
    from huggingface_hub import list_repo_files
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        return [file for file in list_repo_files(name) if "/" not in file]
    except OfflineModeIsEnabled:
        return None
    except Exception as error:  # the Hub client raises errors of many libraries
        raise hub_error(name, wanted, error) from None


def cached(name: str, patterns: Iterable[str], *, wanted: str) -> Path | None:
    """The folder of such files in the Hub client's cache; None where the cache knows of none.

    FileNotFoundError where the cache knows that the repository has them and does not hold them.
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
