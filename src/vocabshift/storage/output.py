"""Output folders that appear whole or not at all.

Work is written to ``DIR.partial`` beside the output and renamed into place at the end. A lock
file in it names the process; the lock of a dead process is taken over. Its folder ``checkpoints``
may outlive a run that fails or is killed, for the next one to go on from. Knows nothing of what
is written.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKPOINTS = "checkpoints"
"""Folder in the partial folder; names in it that begin with a dot are unfinished."""

_LOCK = ".lock"


def check_free(
    folder: str | Path, *, force: bool = False, inputs: Iterable[str | Path] = ()
) -> Path:
    """`folder` as a path, once it is clear that writing there harms nothing.

    FileExistsError where something is there and `force` is off, or where it is no folder;
    ValueError where it holds one of `inputs`, or is the current folder or one above it.
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
        raise FileExistsError(f"{path} exists already; name another output or pass --force")
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

    With `force` an existing folder is replaced, and only once the new one is complete. When the
    block fails the partial folder is removed and whatever stood at `folder` is untouched.

    With `keep_checkpoints` what stands finished in the partial folder's `CHECKPOINTS` stays when
    the block fails or the process is killed, and is there again in the next run, unless `resume`
    is off. The error gets a note of it. It is no part of the output.
    """
    target = check_free(folder, force=force)
    partial = target.with_name(target.name + ".partial")
    _take_lock(partial, keep_checkpoints=keep_checkpoints and resume)
    try:
        yield partial
        if keep_checkpoints:
            _remove(partial / CHECKPOINTS)
        (partial / _LOCK).unlink()
        _replace(target, partial)
    except BaseException as error:
        if keep_checkpoints and _clear(partial, keep_checkpoints=True):
            # Emptied, the lock goes on saying whose folder this is.
            (partial / _LOCK).write_text("", encoding="utf-8")
            error.add_note(
                f"what was finished is kept in {partial}: run the same command again to go on "
                "from there (--no-resume starts afresh)"
            )
        else:
            shutil.rmtree(partial, ignore_errors=True)
        raise


def _take_lock(partial: Path, *, keep_checkpoints: bool) -> None:
    """Make `partial` ours and empty but for finished checkpoints; FileExistsError if it is not."""
    partial.mkdir(parents=True, exist_ok=True)
    lock = partial / _LOCK
    with _alone(partial):
        owner = _live_owner(lock)
        if owner is not None:
            raise FileExistsError(
                f"{partial} is being written by process {owner}; wait for it or stop it (if it is "
                f"gone, on another machine or in another container, empty the file {lock})"
            )
        if not lock.exists() and any(partial.iterdir()):
            raise FileExistsError(
                f"{partial} is needed for work in progress and holds files of somebody else; "
                "move it away or name another output"
            )
        lock.write_text(f"{socket.gethostname()} {os.getpid()}\n", encoding="utf-8")
        _clear(partial, keep_checkpoints=keep_checkpoints)


@contextmanager
def _alone(partial: Path) -> Iterator[None]:
    """Let no other process look at the lock while this one takes it over."""
    in_use = FileExistsError(f"{partial} was just taken by another process; wait for it")
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use from None
        except OSError:  # a file system without locks: two that begin at once are not told apart
            pass
        if not partial.exists() or not os.path.samestat(os.fstat(descriptor), partial.stat()):
            raise in_use  # it has become an output since we opened it
        yield
    finally:
        os.close(descriptor)


def _clear(partial: Path, *, keep_checkpoints: bool) -> bool:
    """Remove all but the lock and, if asked, finished checkpoints; whether any are kept."""
    checkpoints = partial / CHECKPOINTS
    is_kept = False
    if keep_checkpoints and checkpoints.is_dir():
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
    """Process id of the lock's owner if it may still run, else None."""
    try:
        host, text = lock.read_text(encoding="utf-8").split()
        pid = int(text)
    except (OSError, ValueError):
        return None
    if host != socket.gethostname():
        return pid  # on a shared disk another machine's process cannot be seen
    if pid == os.getpid():
        return None
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass
    return pid


def _replace(target: Path, partial: Path) -> None:
    """Put `partial` at `target`; an older folder there is moved aside first, removed last."""
    if not target.exists():
        partial.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.old-", dir=target.parent))
    target.rename(aside / target.name)
    partial.rename(target)
    shutil.rmtree(aside)


# Output files that appear whole or not at all, and replace nothing without `--force`.


def check_free_file(
    file: str | Path, *, force: bool = False, inputs: Iterable[str | Path] = ()
) -> Path:
    """`file` as a path, once it is clear that writing there harms nothing.

    FileExistsError where something is there and `force` is off, or where it is no file;
    ValueError where it is one of `inputs`; FileNotFoundError without its folder.
    """
    path = Path(file)
    if any(path.resolve() == Path(source).resolve() for source in inputs):
        raise ValueError(f"{file} is also an input; name another output")
    if path.is_dir():
        raise FileExistsError(f"{file} is a folder, and a file is to be written; name another")
    if path.exists() and not force:
        raise FileExistsError(f"{file} exists already; name another output or pass --force")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder of {file} does not exist")
    return path


def write_whole(file: Path, text: str) -> None:
    """Write `text` aside and rename it into place."""
    aside = file.with_name(file.name + ".partial")
    try:
        aside.write_text(text, encoding="utf-8", newline="")
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
