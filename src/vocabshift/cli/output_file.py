"""Output files that appear whole or not at all, and replace nothing without `--force`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


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
