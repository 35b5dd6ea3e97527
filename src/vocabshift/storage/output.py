"""Output folders that appear whole or not at all.

Work is written to ``DIR.partial`` next to the output and renamed into place at the end. A lock
file in it names the process; the next run takes over the lock of a dead process. Its folder
``checkpoints`` may survive a failed or killed run, so that the next one can resume.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vocabshift.errors import VocabshiftWarning

if sys.platform != "win32":
    import fcntl

CHECKPOINTS = "checkpoints"
"""Folder in the partial folder; names in it that begin with a dot are unfinished."""

_LOCK = ".lock"
_PARTS = (".bin", ".jinja", ".json", ".model", ".py", ".safetensors")  # of a model's folder


def check_free(
    folder: str | Path, *, force: bool = False, inputs: Iterable[str | Path] = ()
) -> Path:
    """Return `folder` as a path after checking that it is safe to write there.

    FileExistsError if something exists there and `force` is off, or if it is not a folder;
    ValueError if it contains one of `inputs`, or is the current folder or a parent of it.
    """
    path = Path(folder)
    target = path.resolve()
    for source in inputs:
        resolved = Path(source).resolve()
        if Path(source).exists() and target in (resolved, *resolved.parents):
            raise ValueError(f"{folder} would replace the input {source}; name another output")
    if path.is_symlink() and not path.exists():
        raise FileExistsError(f"{path} is a broken link; remove it or name another output")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; name another, or replace it with --force")
    if target in (Path.cwd(), *Path.cwd().parents):
        raise ValueError(f"{folder} is the current folder or one above it; name another output")
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file, and a folder is to be written; name another")
    return path


@contextmanager
def atomic_folder(
    folder: str | Path, *, force: bool = False, keep_checkpoints: bool = False, resume: bool = True
) -> Iterator[Path]:
    """Yield the partial folder to write into; rename it to `folder` when the block succeeds.

    With `force` an existing folder is replaced, with all in it, once the new one is complete; what
    of it cannot be removed, a warning names. When the block fails, the partial folder is removed
    and an existing `folder` is untouched.

    With `keep_checkpoints`, finished checkpoints in the partial folder's `CHECKPOINTS` survive when
    the block fails, with a note at the error, or the process is killed. The next run finds them
    again, unless `resume` is off. They are not part of the output.
    """
    target = check_free(folder, force=force)
    partial = target.with_name(target.name + ".partial")
    _take_lock(partial, keep_checkpoints=keep_checkpoints and resume)
    aside = _lock_aside(partial)
    try:
        yield partial
        if keep_checkpoints:
            _remove(partial / CHECKPOINTS)
        (partial / _LOCK).rename(aside)
        old = _replace(target, partial)
        aside.unlink(missing_ok=True)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if not partial.exists():  # interrupted after all was done
            raise
        if keep_checkpoints and _clear(partial, keep_checkpoints=True):
            # The emptied folder keeps its lock, which still names the owner.
            (partial / _LOCK).write_text("", encoding="utf-8")
            error.add_note(
                f"what was finished is kept in {partial}: run the same command again to go on "
                "from there (--no-resume starts afresh)"
            )
        else:
            shutil.rmtree(partial, ignore_errors=True)
        raise
    if old is not None:
        try:
            shutil.rmtree(old, ignore_errors=True)
        finally:
            if old.exists():  # after Ctrl-C too
                left = f"{target} is complete; what it replaced is left in {old}"
                warnings.warn(left, VocabshiftWarning, stacklevel=3)


def _lock_aside(partial: Path) -> Path:
    """Where the lock is while the finished folder, which must not hold it, is renamed.

    A run that is killed then leaves a folder that the next one knows for its own. The name holds
    the folder's inode: no other folder of that name is taken for it later.
    """
    return partial.with_name(f".{partial.name}-{partial.stat().st_ino}{_LOCK}")


def _take_lock(partial: Path, *, keep_checkpoints: bool) -> None:
    """Lock `partial` and empty it except for finished checkpoints; FileExistsError if in use."""
    lock = partial / _LOCK
    if partial.is_symlink() or lock.is_symlink():  # a folder from elsewhere may bring them
        raise FileExistsError(f"{partial} is a link, or holds one; remove it")
    partial.mkdir(parents=True, exist_ok=True)
    with _alone(partial):
        aside = _lock_aside(partial)
        owner = _live_owner(lock) or _live_owner(aside)
        if owner is not None:
            raise FileExistsError(
                f"{partial} is being written by process {owner}; wait for it or stop it (if it is "
                f"gone, on another machine or in another container, empty the file {lock})"
            )
        if not (lock.exists() or aside.exists()) and any(partial.iterdir()):
            raise FileExistsError(
                f"{partial} is needed for work in progress and holds files of somebody else; "
                "move it away or name another output"
            )
        lock.write_text(f"{socket.gethostname()} {os.getpid()}\n", encoding="utf-8")
        aside.unlink(missing_ok=True)
        _clear(partial, keep_checkpoints=keep_checkpoints)


@contextmanager
def _alone(partial: Path) -> Iterator[None]:
    """Let no other process read the lock while this one takes it over."""
    if sys.platform == "win32":  # no folder can be opened there
        yield
        return
    in_use = FileExistsError(f"{partial} was just taken by another process; wait for it")
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        if not _locked(descriptor):
            raise in_use
        try:
            is_same = os.path.samestat(os.fstat(descriptor), partial.stat())
        except FileNotFoundError:
            is_same = False
        if not is_same:  # it was renamed to an output since we opened it
            raise in_use
        try:
            yield
        except FileNotFoundError:  # or just now
            raise in_use from None
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Lock an open file or folder; whether that went well, no other process having it.

    Where there are no file locks (Windows, some network disks), two simultaneous starts go
    unnoticed.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def _clear(partial: Path, *, keep_checkpoints: bool) -> bool:
    """Remove all but the lock and, optionally, finished checkpoints; return whether any remain."""
    checkpoints = partial / CHECKPOINTS
    is_kept = False
    if keep_checkpoints and checkpoints.is_dir() and not checkpoints.is_symlink():
        for entry in checkpoints.iterdir():
            if entry.name.startswith("."):
                _remove(entry)
        is_kept = any(checkpoints.iterdir())
    for entry in partial.iterdir():
        if entry.name != _LOCK and not (is_kept and entry == checkpoints):
            _remove(entry)
    return is_kept


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


def _live_owner(lock: Path) -> int | None:
    """Process id of the lock's owner if it may still be running, else None."""
    try:
        host, text = lock.read_text(encoding="utf-8").split()
        pid = int(text)
    except (OSError, ValueError):
        return None
    if host != socket.gethostname():
        return pid  # on a shared disk, processes of other machines are invisible
    if pid == os.getpid():
        return None
    if sys.platform == "win32":
        return pid  # asking with os.kill would end it
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass
    return pid


def _replace(target: Path, partial: Path) -> Path | None:
    """Move `partial` to `target`; return where the old one is, which a failure puts back."""
    if not target.exists():
        partial.rename(target)
        return None
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.old-", dir=target.parent))
    try:
        target.rename(aside / target.name)
        partial.rename(target)
    except BaseException:
        if partial.exists() and (aside / target.name).exists():
            (aside / target.name).rename(target)  # where this fails, the old one stays there
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return aside


# Output files that appear whole or not at all, and replace nothing without `--force`.


def check_free_file(
    file: str | Path, *, force: bool = False, inputs: Iterable[str | Path] = ()
) -> Path:
    """Return `file` as a path after checking that it is safe to write there.

    FileExistsError if something exists there and `force` is off, or if it is not a file;
    ValueError if it is, or may be, part of `inputs`; FileNotFoundError if its folder is missing.
    """
    path = Path(file)
    target = path.resolve()
    for source in map(Path, inputs):
        if target == source.resolve():
            raise ValueError(f"{file} is also an input; name another output")
        if target.parent == source.resolve() and path.exists() and path.suffix in _PARTS:
            raise ValueError(f"{file} may be a part of the input {source}; name another output")
    if path.is_dir():
        raise FileExistsError(f"{file} is a folder, and a file is to be written; name another")
    if path.exists() and not force:
        raise FileExistsError(f"{file} exists already; name another output or pass --force")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder of {file} does not exist; make it first")
    return path


def write_whole(file: Path, text: str) -> None:
    """Write `text` in a folder of this process alone, and rename it; an OSError names `file`."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{file.name[:40]}-", dir=file.parent) as folder:
            Path(folder, "whole").write_text(text, encoding="utf-8", newline="")
            Path(folder, "whole").replace(file)
    except OSError as error:
        error.filename = str(file)
        raise


@contextmanager
def atomic_file(
    file: str | Path, *, force: bool = False, inputs: Iterable[str | Path] = ()
) -> Iterator[Path]:
    """Yield the partial file to write; rename it to `file` when the block succeeds.

    It is removed when the block fails, and an existing `file` is untouched. Errors as for
    `check_free_file`; FileExistsError too where another process is writing it.
    """
    path = check_free_file(file, force=force, inputs=inputs)
    partial = path.with_name(path.name + ".partial")
    if partial.is_symlink():  # it would be followed
        raise FileExistsError(f"{partial} is a link; remove it")
    with partial.open("ab") as stream:
        if not _locked(stream.fileno()):
            raise FileExistsError(f"{partial} is being written by another process")
        if sys.platform == "win32":
            stream.close()  # an open file could not be renamed
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
