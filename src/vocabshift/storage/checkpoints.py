"""Finished phases of a long run, kept on disk so that a killed run loses at most one phase.

Each phase is a folder of its own: `data`, a file or folder as the caller wrote it, and
`record.json` with the key of the run, the caller's `info`, and the size and CRC-32 of every file.
A phase is written under a name that begins with a dot and renamed when it is complete, so a name
without a dot means a finished phase. If a crash of the machine damages a finished phase, its
checksum fails and the phase is done again. CRC-32 covers all bytes: zlib computes 3.5 GB/s on one
core, faster than disks deliver, so sampling would save no time.

Knows nothing of the content, nor of locks: one process at a time uses a folder.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FORMAT = 1
_DATA = "data"
_RECORD = "record.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")
_BLOCK = 8 << 20  # bytes read at once for a checksum
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_ROOM = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Saved:
    """A finished phase."""

    path: Path  # the file or folder that was written; do not modify it
    info: Mapping[str, Any]  # as passed to `commit`
    checksums: Mapping[str, int]  # CRC-32 of each file, by its path below `path`


class Checkpoints:
    """The finished phases of one run in `folder`.

    `key` identifies the run: its configuration and its input. Phases in `folder` under another key
    are removed at once. If `folder` or `key` is None (nowhere to store, or an input that the next
    process could not recognise), nothing is kept or found: `path` and `load` return None.
    """

    def __init__(self, folder: Path | None, key: str | None) -> None:
        self._key = key or ""
        self._folder = folder if key is not None else None
        if folder is not None and folder.is_dir():
            for entry in folder.iterdir():
                if not self._is_ours(entry):
                    _remove(entry)

    @property
    def is_kept(self) -> bool:
        """Whether phases are kept at all."""
        return self._folder is not None

    def path(self, phase: str) -> Path | None:
        """Where to write the file or folder of `phase` before `commit`; nothing exists there yet.

        None if nothing is kept: then there is no need to write.
        """
        if self._folder is None:
            return None
        unfinished = self._unfinished(phase)
        _remove(unfinished)
        unfinished.mkdir(parents=True)
        return unfinished / _DATA

    def commit(self, phase: str, info: Mapping[str, Any] | None = None) -> Saved | None:
        """Make what was written at `path(phase)` the finished phase, with `info` (plain JSON).

        It replaces an earlier phase of that name. OSError if the disk is full: then unfinished
        files are removed and the phases finished before stay.
        """
        if self._folder is None:
            return None
        unfinished = self._unfinished(phase)
        try:
            record: dict[str, Any] = {
                "format": _FORMAT,
                "key": self._key,
                "info": dict(info or {}),
                "files": _sync(unfinished / _DATA),
            }
            record["crc32"] = _checksum_of(record)
            text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1)
            (unfinished / _RECORD).write_text(text + "\n", encoding="utf-8")
            _sync(unfinished / _RECORD)
            _sync_folder(unfinished)
            _remove(self._folder / phase)
            unfinished.rename(self._folder / phase)
            _sync_folder(self._folder)
        except BaseException as error:
            self._give_up(phase, error)
            raise
        return _saved(self._folder / phase, record)

    def save(
        self, phase: str, write: Callable[[Path], object], info: Mapping[str, Any] | None = None
    ) -> Saved | None:
        """`write(path)`, then `commit`; if `write` fails, its files are removed."""
        if self._folder is None:
            return None
        try:
            path = self.path(phase)
            assert path is not None
            write(path)
        except BaseException as error:
            self._give_up(phase, error)
            raise
        return self.commit(phase, info)

    def load(self, phase: str) -> Saved | None:
        """The finished phase, with every checksum verified; a damaged one is removed: None."""
        if self._folder is None:
            return None
        place = self._folder / _checked(phase)
        record = _read_record(place)
        if record is None or not self._is_ours(place) or not _is_whole(place / _DATA, record):
            _remove(place)
            return None
        return _saved(place, record)

    def drop(self, *phases: str) -> None:
        """Remove these phases, finished or not; without names, remove all."""
        if self._folder is None:
            return
        for phase in phases:
            _remove(self._unfinished(phase))
            _remove(self._folder / phase)
        if not phases:
            _remove(self._folder)

    def _unfinished(self, phase: str) -> Path:
        assert self._folder is not None
        return self._folder / f".{_checked(phase)}"

    def _give_up(self, phase: str, error: BaseException) -> None:
        """Remove unfinished files; raise a full disk as a new error that says what to do."""
        assert self._folder is not None
        # numpy's tofile reports a short write without an errno.
        is_full = isinstance(error, OSError) and (
            error.errno in _DISK_FULL
            or (error.errno is None and shutil.disk_usage(self._folder).free < _NO_ROOM)
        )
        _remove(self._unfinished(phase))
        if is_full:
            raise OSError(
                errno.ENOSPC,
                f"the disk is full, while saving the checkpoint {phase!r}; nothing half-written "
                "is left: make room and run the same command again",
                str(self._folder),
            ) from error

    def _is_ours(self, place: Path) -> bool:
        record = None if place.name.startswith(".") else _read_record(place)
        return record is not None and (_FORMAT, self._key) == (record["format"], record["key"])


def read_phase(place: Path, key: str) -> Saved | None:
    """The finished phase of a run with this key, every checksum verified; None if there is none.

    Unlike `Checkpoints`, this changes nothing on disk: the run may still be going on.
    """
    record = _read_record(place)
    if record is None or (_FORMAT, key) != (record["format"], record["key"]):
        return None
    return _saved(place, record) if _is_whole(place / _DATA, record) else None


def _checked(phase: str) -> str:
    if not _NAME.fullmatch(phase):
        raise ValueError(f"phase {phase!r}: a name of letters, digits, spaces, _ and - is needed")
    return phase


def _saved(place: Path, record: Mapping[str, Any]) -> Saved:
    checksums = {name: checksum for name, (_, checksum) in record["files"].items()}
    return Saved(place / _DATA, record["info"], checksums)


def _read_record(place: Path) -> dict[str, Any] | None:
    """The record of a finished phase; None if it is missing or damaged."""
    try:
        record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
        # Records of older versions have no checksum of their own.
        if record.pop("crc32", None) not in (None, _checksum_of(record)):
            return None
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        return None
    kinds = {"format": int, "key": str, "info": dict, "files": dict}
    if not isinstance(record, dict) or any(
        not isinstance(record.get(name), kind) for name, kind in kinds.items()
    ):
        return None
    return record


def _is_whole(data: Path, record: Mapping[str, Any]) -> bool:
    """Whether exactly the files of the record are there, each with its size and checksum."""
    files = record["files"]
    try:
        there = {name: file.stat().st_size for name, file in _files(data).items()}
        if there != {name: size for name, (size, _) in files.items()}:
            return False
        return all(_checksum(_file(data, name)) == crc for name, (_, crc) in files.items())
    except (OSError, ValueError, TypeError):
        return False


def _files(data: Path) -> dict[str, Path]:
    """All files of a phase by path relative to `data`; "" if `data` is itself a file."""
    if data.is_file():
        return {"": data}
    return {
        path.relative_to(data).as_posix(): path
        for path in sorted(data.rglob("*"))
        if not path.is_dir()
    }


def _file(data: Path, name: str) -> Path:
    return data / name if name else data


def _sync(path: Path) -> dict[str, tuple[int, int]]:
    """Sync all files of `path` to disk; {relative path: (size in bytes, checksum)}."""
    if not path.exists():
        raise FileNotFoundError(f"nothing was written at {path}")
    described = {}
    for name, file in _files(path).items():
        # Windows syncs only what is open for writing; a linked file may be read-only.
        with file.open("r+b" if sys.platform == "win32" else "rb") as stream:
            os.fsync(stream.fileno())
        described[name] = (file.stat().st_size, _checksum(file))
    for folder in [path, *path.rglob("*")]:
        if folder.is_dir():
            _sync_folder(folder)
    return described


def _sync_folder(folder: Path) -> None:
    """Sync the directory entries of a folder to disk, where the system lets a folder be opened."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum_of(record: Mapping[str, Any]) -> int:
    """Of what a record says, as JSON has it: what it says of the run is in no other file."""
    return zlib.crc32(json.dumps(record, ensure_ascii=False, allow_nan=False).encode())


def _checksum(file: Path) -> int:
    checksum = 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _remove(place: Path) -> None:
    """Remove a file or folder if it exists."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)
