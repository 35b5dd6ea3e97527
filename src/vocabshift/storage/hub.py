"""The Hugging Face Hub: the only place that downloads from it, and the one that uploads to it.

Owns which names a repository can have and the error of a failed download; and of an upload the list
of files, the files that make it refuse, and the calls of huggingface_hub. A repository is private
unless asked otherwise. The caller has checked the content of the files. It is on the lowest layer
because `tokenizer` and `models` above it both read from the Hub.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

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


CARD_FILE = "README.md"
_CHECKSUM = re.compile(r"sha256 of tokenizer\.json \| ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Sent:
    """One file that goes to the Hub."""

    name: str  # below the folder, with "/"
    n_bytes: int


def check_repo(repo: str) -> str:
    """The repository's name, if it is one: `owner/name`, or `name` for one's own; ValueError."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise ValueError(f"{repo!r} is no name of a repository: {error}") from None
    return repo


def files_of(folder: str | Path) -> list[Sent]:
    """Every file of the folder, by name; ValueError where one of them must not go.

    Unfinished work (`.partial`, beside the folder or in it) and links stop everything; hidden
    files are left out, and `models/`, what `cpt` saved at evaluations.
    """
    path = Path(folder)
    if not path.is_dir():
        raise NotADirectoryError(f"{folder} is no folder")
    beside = path.resolve().with_name(path.resolve().name + ".partial")
    if beside.exists():
        raise ValueError(f"{beside} is work in progress for this folder; finish or remove it")
    sent = []
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if any(part.startswith(".") for part in Path(name).parts) or name.startswith("models/"):
            continue
        if ".partial" in file.suffixes:
            raise ValueError(f"{file} is unfinished; remove it or write the folder again")
        if file.is_symlink():
            raise ValueError(f"{file} is a link; put the file itself there")
        if file.is_file():
            sent.append(Sent(name, file.stat().st_size))
    if not sent:
        raise ValueError(f"{folder} holds no file")
    return sent


def read_card(folder: str | Path, sha256: str | None = None) -> dict[str, Any]:
    """The metadata of the folder's card; ValueError where there is none, or it is of another file.

    `sha256`: that of the folder's tokenizer.json, with which what the card says is compared.
    """
    from huggingface_hub import ModelCard

    file = Path(folder) / CARD_FILE
    if not file.is_file():
        raise ValueError(
            f"{folder} has no {CARD_FILE}; write one with `vocabshift card {quote(str(folder))} … "
            f"-o {quote(str(file))}`"
        )
    no_metadata = f"{file} has no metadata between --- at its head; the Hub needs them"
    try:
        text = file.read_text(encoding="utf-8")
        if not re.match(r"\s*---[\r\n]", text):  # the library would log a warning of its own
            raise ValueError(no_metadata)
        card = ModelCard(text)
        metadata: dict[str, Any] = card.data.to_dict()  # type: ignore[no-untyped-call]
    except Exception as error:  # YAML raises classes of its own
        raise ValueError(f"the metadata of {file} cannot be read: {error}") from None
    if not metadata:
        raise ValueError(no_metadata)
    named = _CHECKSUM.search(card.text)
    if named and sha256 is not None and named.group(1) != sha256:
        raise ValueError(
            f"{file} is the card of another tokenizer.json (sha256 {named.group(1)[:12]}…, and "
            f"this is {sha256[:12]}…); write it again with `vocabshift card`"
        )
    return metadata


def upload(
    folder: str | Path, repo: str, files: Sequence[Sent], *, is_private: bool, message: str
) -> str:
    """Make the repository where it is not there and send just these files; the commit's address.

    A repository that is there keeps its visibility.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi()
    url = api.create_repo(repo, private=is_private, exist_ok=True, repo_type="model")
    operations = [
        CommitOperationAdd(path_in_repo=file.name, path_or_fileobj=Path(folder) / file.name)
        for file in files
    ]
    commit = api.create_commit(
        url.repo_id, operations=operations, commit_message=message, repo_type="model"
    )
    return str(commit.commit_url)
