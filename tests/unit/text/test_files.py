"""Paths, folders and globs."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.files import File, exists, file_at, find


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n", encoding="utf-8")


def names(folder: Path, place: str | Path) -> list[str]:
    return [file.path.relative_to(folder).as_posix() for file in find(place)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", ("txt", None)),
        ("a.b.JSONL.GZ", ("jsonl", "gz")),
        ("a.json.zst", ("json", "zst")),
        ("a.parquet", ("parquet", None)),
        ("a.txt.xz", ("txt", "xz")),
    ],
)
def test_suffixes_tell_the_kind(name: str, kind: tuple[str, str | None]) -> None:
    """Format and compression, in upper case too."""
    assert File(Path(name), *kind) == file_at(name)


@pytest.mark.parametrize("name", ["a", "a.gz", "a.tsv", "a.txt.bz2", ".txt", "txt"])
def test_other_suffixes_say_nothing(name: str) -> None:
    """None rather than a guess."""
    assert file_at(name) is None


def test_folder_is_walked_in_order(tmp_path: Path) -> None:
    """Supported files below it, sorted; hidden and other files are skipped."""
    put(tmp_path, "b.txt", "a/z.jsonl", "a/c.txt.gz", "c.tsv", ".h.txt", ".git/x.txt")
    assert ["a/c.txt.gz", "a/z.jsonl", "b.txt"] == names(tmp_path, tmp_path)


def test_glob_is_sorted_and_crosses_folders(tmp_path: Path) -> None:
    """`**` goes down, and nothing comes twice."""
    put(tmp_path, "b.txt", "a/d/c.txt", "a/e.jsonl")
    assert ["a/d/c.txt", "b.txt"] == names(tmp_path, f"{tmp_path}/**/*.txt")
    assert ["a/d/c.txt", "a/e.jsonl", "b.txt"] == names(tmp_path, f"{tmp_path}/**")


def test_existing_path_is_no_glob(tmp_path: Path) -> None:
    """Brackets in the name of a file that exists mean themselves."""
    put(tmp_path, "a[1].txt", "a1.txt")
    assert ["a[1].txt"] == names(tmp_path, f"{tmp_path}/a[1].txt")


def test_home_expands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` is the home folder."""
    put(tmp_path, "a.txt")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ["a.txt"] == names(tmp_path, "~/a.txt")
    assert exists("~/a.txt")
    assert not exists("~/b.txt")
    assert not exists("nul\0l")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("none.txt", r"none\.txt: no such file or folder"),
        ("*.jsonl", "no file matches"),
        ("a.tsv", r"unknown suffix; supported: \.txt \.jsonl \.json \.parquet"),
        ("*.tsv", "unknown suffix"),
        ("empty", "no supported file in this folder"),
    ],
)
def test_nothing_to_read_is_an_error(tmp_path: Path, place: str, message: str) -> None:
    """Told at once, with what would be supported."""
    put(tmp_path, "a.tsv", "empty/a.tsv")
    with pytest.raises(CorpusError, match=message):
        find(tmp_path / place)


def test_device_is_no_file() -> None:
    """What is neither file nor folder cannot be read twice."""
    with pytest.raises(CorpusError, match="neither a file nor a folder"):
        find("/dev/null")
