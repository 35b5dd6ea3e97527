"""Files that a verb writes beside what it prints: whether they may be written.

Knows nothing of what is in them.
"""

from __future__ import annotations

from pathlib import Path


def free_file(name: str | None, *, force: bool) -> Path | None:
    """The path, once it is clear that writing there harms nothing; None for no name.

    FileExistsError where something is there and `force` is off or it is no file; FileNotFoundError
    where its folder is missing.
    """
    if name is None:
        return None
    path = Path(name)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; name another file or pass --force")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder of {path} does not exist")
    return path
