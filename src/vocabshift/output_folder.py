"""Output folders that appear whole or not at all.

Work is written to ``DIR.partial`` beside the output and renamed into place at the end. A lock
file in it names the process; the lock of a dead process is taken over. Knows nothing of what is
written.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
def atomic_folder(folder: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield the partial folder to write into; rename it to `folder` when the block succeeds.

    With `force` an existing folder is replaced, and only once the new one is complete. When the
    block fails the partial folder is removed and whatever stood at `folder` is untouched.
    """
    target = check_free(folder, force=force)
    partial = target.with_name(target.name + ".partial")
    _take_lock(partial)
    try:
        yield partial
        (partial / _LOCK).unlink()
        _replace(target, partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _take_lock(partial: Path) -> None:
    partial.parent.mkdir(parents=True, exist_ok=True)
    if partial.exists():
        owner = _live_owner(partial / _LOCK)
        if owner is not None:
            raise FileExistsError(
                f"{partial} is being written by process {owner}; wait for it or stop it"
            )
        if not (partial / _LOCK).exists() and any(partial.iterdir()):
            raise FileExistsError(
                f"{partial} is needed for work in progress and holds files of somebody else; "
                "move it away or name another output"
            )
        shutil.rmtree(partial)
    partial.mkdir()
    (partial / _LOCK).write_text(f"{socket.gethostname()} {os.getpid()}\n", encoding="utf-8")


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
