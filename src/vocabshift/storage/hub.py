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
_NOT_FETCHED = "{}: no such file or folder, and it could not be fetched from the Hugging Face Hub: "
_OFFLINE = (
    "HF_HUB_OFFLINE is set and the cache holds no copy; check the path, or unset HF_HUB_OFFLINE"
)
_NO_NETWORK = (
    "the Hub cannot be reached and the cache holds no copy; check the path, or the network"
)
_REASONS = {
    "OfflineModeIsEnabled": _OFFLINE,
    "GatedRepoError": "the repository is gated; accept its terms on huggingface.co and log in with "
    "`hf auth login`",
    "RepositoryNotFoundError": "no such repository, or a private one; check the path or the "
    "spelling, or log in with `hf auth login`",
    "ConnectError": _NO_NETWORK,  # httpx and httpx2
    "ConnectTimeout": _NO_NETWORK,
    "ProxyError": _NO_NETWORK,
    "gaierror": _NO_NETWORK,
    "MaxRetryError": _NO_NETWORK,  # requests, below huggingface_hub 1
    "LocalEntryNotFoundError": _NO_NETWORK,  # all that transformers keeps of the others
}
"""Class of an error of the Hub's client, or of its network library -> what it means; the first
that fits. By name, because the client changed its network library twice."""
_FILE_SUFFIXES = {".json", ".model", ".gguf", ".tiktoken", ".txt", ".bin"}


def is_hub_name(source: str | Path) -> bool:
    """Whether a Hub repository can have this name; False for file names."""
    name = str(source)
    return Path(name).suffix not in _FILE_SUFFIXES and bool(_NAME.fullmatch(name))


def is_there(source: str | Path) -> bool:
    """Whether a file or folder has this name; False for names that none can have."""
    try:
        return Path(source).exists()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def missing(name: str) -> FileNotFoundError:
    """The error of a name that is no file or folder, where the Hub need not or may not be asked."""
    if is_hub_name(name):
        return FileNotFoundError(f"{_NOT_FETCHED.format(name)}{_OFFLINE}")
    where = "" if Path(name).is_absolute() else f" (it is relative to {Path.cwd()})"
    return FileNotFoundError(f"{name[:200]}: no such file or folder; check the path{where}")


def hub_error(name: str, wanted: str, error: BaseException) -> FileNotFoundError:
    """The error of a failed download, in one line: no such path, and why the Hub does not help.

    `wanted`: what was asked of the Hub, as in "the Hub does not give its weights".
    """
    return FileNotFoundError(f"{_NOT_FETCHED.format(name)}{_why(wanted, error)}")


def _why(wanted: str, error: BaseException) -> str:
    """What a user can act on, found among the errors that led to this one."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    kinds = {base.__name__ for each in chain for base in type(each).__mro__}
    if "IncompleteSnapshotError" not in kinds:
        for name, reason in _REASONS.items():
            if name in kinds:
                return _OFFLINE if reason == _NO_NETWORK and is_offline() else reason
    said = " ".join(str(error).split())[:160] or type(error).__name__
    return f"the Hub does not {wanted}: {said}"


def is_offline() -> bool:
    """Whether the user has switched the Hub off (`HF_HUB_OFFLINE`)."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def download(
    name: str, patterns: Iterable[str], *, wanted: str = "give it", nested: bool = True
) -> Path:
    """Download the matching files of a repository; return the folder that holds them.

    `nested`: also files in folders of the repository. FileNotFoundError with the reason if no
    repository can have this name or the download fails.
    """
    if not is_hub_name(name):
        raise missing(name)
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
