"""A finished phase is found again whole, or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vocabshift.storage.checkpoints import Checkpoints


def write_folder(path: Path) -> None:
    """A phase of three files, one of them empty, one further down."""
    (path / "deep").mkdir(parents=True)
    (path / "ids").write_bytes(bytes(range(256)) * 100)
    (path / "empty").touch()
    (path / "deep" / "words").write_text("नदी", encoding="utf-8")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with the phases "count" (a folder) and "stage 1" (a file)."""
    checkpoints = Checkpoints(tmp_path / "kept", "key")
    count = checkpoints.save("count", write_folder, {"n": 3})
    assert count == checkpoints.load("count")
    checkpoints.save("stage 1", lambda path: path.write_bytes(b"merges"))
    return tmp_path / "kept"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_is_loaded(saved: Path) -> None:
    checkpoints = Checkpoints(saved, "key")
    count, stage = checkpoints.load("count"), checkpoints.load("stage 1")
    assert count is not None
    assert stage is not None
    assert {"n": 3} == count.info
    assert bytes(range(256)) * 100 == (count.path / "ids").read_bytes()
    assert "नदी" == (count.path / "deep" / "words").read_text(encoding="utf-8")
    assert {"ids", "empty", "deep/words"} == set(count.checksums)
    assert ({}, b"merges") == (stage.info, stage.path.read_bytes())
    assert {"": zlib.crc32(b"merges")} == stage.checksums
    assert checkpoints.load("stage 2") is None
    assert ["count", "stage 1"] == names(saved)


def test_another_key_removes_what_is_there(saved: Path) -> None:
    assert Checkpoints(saved, "another").load("count") is None
    assert [] == names(saved)
    assert Checkpoints(saved, "key").load("count") is None


def test_an_input_without_a_key_removes_what_is_there(saved: Path) -> None:
    checkpoints = Checkpoints(saved, None)
    assert not checkpoints.is_kept
    assert [] == names(saved)
    assert checkpoints.path("count") is None


def test_without_a_folder_nothing_is_done() -> None:
    checkpoints = Checkpoints(None, "key")
    assert not checkpoints.is_kept
    assert checkpoints.path("count") is None
    checkpoints.commit("count", {"n": 1})
    checkpoints.save("count", lambda _: pytest.fail("nothing is to be written"))
    checkpoints.drop()
    assert checkpoints.load("count") is None


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def change_record(folder: Path, name: str, value: object) -> None:
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    (folder / "record.json").write_text(json.dumps(record | {name: value}), encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: flip(folder / "data" / "ids"),
        lambda folder: os.truncate(folder / "data" / "ids", 100),
        lambda folder: (folder / "data" / "ids").unlink(),
        lambda folder: (folder / "data" / "more").touch(),
        lambda folder: (folder / "data" / "empty").write_bytes(b"x"),
        lambda folder: shutil.rmtree(folder / "data"),
        lambda folder: (folder / "record.json").unlink(),
        lambda folder: os.truncate(folder / "record.json", 40),
        lambda folder: (folder / "record.json").write_bytes(b"\xff"),
        lambda folder: (folder / "record.json").write_text("[]"),
        lambda folder: (folder / "record.json").write_text("[" * 100_000),
        lambda folder: change_record(folder, "files", {"ids": 3}),
        lambda folder: change_record(folder, "files", None),
        lambda folder: change_record(folder, "format", 99),
        lambda folder: change_record(folder, "key", "another"),
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_a_damaged_phase_is_done_again(
    saved: Path, damage: Callable[[Path], object], is_open: bool
) -> None:
    """Whether it was damaged before the process began or after; the other phase stays."""
    opened = Checkpoints(saved, "key")
    damage(saved / "count")
    checkpoints = opened if is_open else Checkpoints(saved, "key")
    assert checkpoints.load("count") is None
    assert ["stage 1"] == names(saved)
    checkpoints.save("count", write_folder, {"n": 4})
    again = checkpoints.load("count")
    assert again is not None
    assert {"n": 4} == again.info
    assert checkpoints.load("stage 1") is not None


def test_what_is_not_committed_is_never_found(saved: Path) -> None:
    checkpoints = Checkpoints(saved, "key")
    path = checkpoints.path("stage 2")
    assert path is not None
    path.write_bytes(b"half")
    assert checkpoints.load("stage 2") is None
    assert Checkpoints(saved, "key").load("stage 2") is None
    assert ["count", "stage 1"] == names(saved)


def test_a_phase_is_replaced(saved: Path) -> None:
    checkpoints = Checkpoints(saved, "key")
    checkpoints.save("count", lambda path: path.write_bytes(b"one file now"))
    count = checkpoints.load("count")
    assert count is not None
    assert b"one file now" == count.path.read_bytes()


def test_phases_are_dropped(saved: Path) -> None:
    checkpoints = Checkpoints(saved, "key")
    checkpoints.drop("count", "never there")
    assert ["stage 1"] == names(saved)
    checkpoints.drop()
    assert not saved.exists()


@pytest.mark.parametrize("phase", ["", ".hidden", "a/b", "..", "ф"])
def test_a_name_that_is_no_file_name_is_refused(saved: Path, phase: str) -> None:
    with pytest.raises(ValueError, match="phase"):
        Checkpoints(saved, "key").path(phase)


def test_committing_nothing_is_an_error(saved: Path) -> None:
    checkpoints = Checkpoints(saved, "key")
    checkpoints.path("stage 2")
    with pytest.raises(FileNotFoundError, match="nothing was written"):
        checkpoints.commit("stage 2")
    assert ["count", "stage 1"] == names(saved)


def full_disk(_: Path) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_then_full(path: Path) -> None:
    write_folder(path)
    full_disk(path)


def test_a_full_disk_leaves_nothing_half_written(saved: Path) -> None:
    checkpoints = Checkpoints(saved, "key")
    with pytest.raises(OSError, match=r"disk is full.*'stage 2'.*same command again") as caught:
        checkpoints.save("stage 2", half_then_full)
    assert errno.ENOSPC == caught.value.errno
    assert ["count", "stage 1"] == names(saved)
    assert checkpoints.load("count") is not None


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_is_full_only_at_the_end_leaves_nothing(
    saved: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    checkpoints = Checkpoints(saved, "key")
    where = Path if call == "rename" else os
    monkeypatch.setattr(where, call, lambda *_: full_disk(saved))
    with pytest.raises(OSError, match="disk is full"):
        checkpoints.save("stage 2", write_folder)
    monkeypatch.undo()
    assert ["count", "stage 1"] == names(saved)


def test_another_error_comes_through_as_it_is(saved: Path) -> None:
    checkpoints = Checkpoints(saved, "key")
    for error in (ValueError("wrong"), KeyboardInterrupt(), PermissionError(errno.EACCES, "no")):
        with pytest.raises(type(error)) as caught:
            checkpoints.save("stage 2", lambda _, error=error: (_ for _ in ()).throw(error))
        assert error is caught.value
    assert ["count", "stage 1"] == names(saved)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> str:
    """A shell prefix that runs a command with a file system of 1 MB at tmp_path/disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=1m tiny {disk}"
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("no right to mount a small file system here")
    return mount


@pytest.mark.no_tsan
@pytest.mark.parametrize("writer", ["bytes", "numpy"])
def test_a_disk_that_is_really_full(tiny_disk: str, tmp_path: Path, writer: str) -> None:
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from vocabshift.storage.checkpoints import Checkpoints\n"
        "folder = Path(sys.argv[1]) / 'kept'\n"
        "data = np.zeros(1 << 21, dtype=np.uint8)\n"
        "write = {'bytes': lambda path: path.write_bytes(data.tobytes()),\n"
        "         'numpy': lambda path: data.tofile(path)}[sys.argv[2]]\n"
        "checkpoints = Checkpoints(folder, 'key')\n"
        "checkpoints.save('count', lambda path: path.write_bytes(b'small'))\n"
        "try:\n"
        "    checkpoints.save('stage 1', write)\n"
        "except OSError as error:\n"
        "    print(error)\n"
        "print(sorted(path.name for path in folder.iterdir()), checkpoints.load('count').info)\n"
    )
    run = subprocess.run(
        [
            *("unshare", "-rm", "sh", "-c", f'{tiny_disk} && exec "$@"', "sh"),
            *(sys.executable, "-c", code, str(tmp_path / "disk"), writer),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    error, left = run.stdout.splitlines()
    assert "the disk is full, while saving the checkpoint 'stage 1'" in error
    assert "['count'] {}" == left


def test_a_killed_process_leaves_what_was_finished(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from vocabshift.storage.checkpoints import Checkpoints\n"
        "checkpoints = Checkpoints(Path(sys.argv[1]), 'key')\n"
        "checkpoints.save('count', lambda path: path.write_bytes(b'done'))\n"
        "checkpoints.path('stage 1').write_bytes(b'half')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "kept"], check=False)
    assert [".stage 1", "count"] == names(tmp_path / "kept")
    checkpoints = Checkpoints(tmp_path / "kept", "key")
    assert ["count"] == names(tmp_path / "kept")
    assert checkpoints.load("count") is not None


def test_large_files_are_checked_to_the_last_byte(tmp_path: Path) -> None:
    """More than one block of the checksum."""
    checkpoints = Checkpoints(tmp_path, "key")
    data = np.arange(5 << 20, dtype=np.uint32)
    checkpoints.save("count", data.tofile)
    count = checkpoints.load("count")
    assert count is not None
    with count.path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    assert checkpoints.load("count") is None
