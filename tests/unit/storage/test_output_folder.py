"""An output folder appears whole or not at all, whatever fails."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from vocabshift.storage import output
from vocabshift.storage.output import (
    atomic_file,
    atomic_folder,
    check_free,
    check_free_file,
    write_whole,
)


def write(folder: Path, content: str, *, force: bool = False) -> None:
    with atomic_folder(folder, force=force) as partial:
        (partial / "file").write_text(content, encoding="utf-8")


def contents(folder: Path) -> dict[str, str]:
    """Everything below a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(f.relative_to(folder)): f.read_text(encoding="utf-8") for f in files}


def partial_with_lock(folder: Path, lock: str) -> Path:
    partial = folder.with_name(folder.name + ".partial")
    partial.mkdir(parents=True)
    (partial / ".lock").write_text(lock, encoding="utf-8")
    (partial / "half").write_text("done", encoding="utf-8")
    return partial


def test_nothing_but_the_folder_is_left(tmp_path: Path) -> None:
    write(tmp_path / "a" / "out", "new")
    assert {"a/out/file": "new"} == contents(tmp_path)


def test_the_folder_is_not_there_before_the_end(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "out") as partial:
        assert partial == tmp_path / "out.partial"
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").is_dir()


def test_an_existing_folder_needs_force(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(FileExistsError, match=r"out exists already.*--force"):
        write(tmp_path / "out", "new")
    assert {"out/file": "old"} == contents(tmp_path)
    write(tmp_path / "out", "new", force=True)
    assert {"out/file": "new"} == contents(tmp_path)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failing_block_leaves_the_old_folder(tmp_path: Path, error: type[BaseException]) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(error), atomic_folder(tmp_path / "out", force=True) as partial:
        (partial / "file").write_text("half", encoding="utf-8")
        raise error
    assert {"out/file": "old"} == contents(tmp_path)
    with pytest.raises(error), atomic_folder(tmp_path / "other"):
        raise error
    assert {"out/file": "old"} == contents(tmp_path)


def test_with_force_the_old_folder_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    with atomic_folder(tmp_path / "out", force=True) as partial:
        (partial / "other").write_text("new", encoding="utf-8")
        assert "old" == (tmp_path / "out" / "file").read_text(encoding="utf-8")
    assert {"out/other": "new"} == contents(tmp_path)


@pytest.mark.parametrize("force", [False, True])
def test_a_file_is_never_replaced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError):
        write(tmp_path / "out", "new", force=force)
    assert {"out": "mine"} == contents(tmp_path)


def test_a_broken_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match="broken link"):
        check_free(tmp_path / "out", force=True)


def test_a_free_path_is_returned(tmp_path: Path) -> None:
    assert tmp_path / "out" == check_free(str(tmp_path / "out"))


def test_the_lock_of_a_living_process_is_respected(tmp_path: Path) -> None:
    owner = os.getppid()
    partial = partial_with_lock(tmp_path / "out", f"{socket.gethostname()} {owner}\n")
    with pytest.raises(FileExistsError, match=f"process {owner}"):
        write(tmp_path / "out", "new")
    assert "done" == (partial / "half").read_text(encoding="utf-8")


def test_the_lock_of_another_machine_is_respected(tmp_path: Path) -> None:
    partial_with_lock(tmp_path / "out", "some-other-host 1\n")
    with pytest.raises(FileExistsError, match="process 1"):
        write(tmp_path / "out", "new")


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    partial_with_lock(tmp_path / "out", f"{socket.gethostname()} {process.pid}\n")
    write(tmp_path / "out", "new")
    assert {"out/file": "new"} == contents(tmp_path)


@pytest.mark.parametrize("lock", ["", "nonsense", "host not-a-number", f"{'x' * 9} 1 2 3"])
def test_a_lock_that_says_nothing_is_taken_over(tmp_path: Path, lock: str) -> None:
    partial_with_lock(tmp_path / "out", lock)
    write(tmp_path / "out", "new")
    assert {"out/file": "new"} == contents(tmp_path)


def test_a_process_killed_in_the_middle_leaves_what_the_next_one_clears(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from vocabshift.storage.output import atomic_folder\n"
        "with atomic_folder(sys.argv[1]) as partial:\n"
        "    (partial / 'half').write_text('done')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=False)
    assert {"out.partial/.lock", "out.partial/half"} == set(contents(tmp_path))
    write(tmp_path / "out", "new")
    assert {"out/file": "new"} == contents(tmp_path)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_killed_as_it_renames_leaves_nothing_in_the_way(
    tmp_path: Path, moment: str
) -> None:
    """The finished folder has lost its lock by then; it is still known for our own."""
    rename = "" if moment == "before" else "rename(*paths); "
    code = (
        "import os, signal\n"
        "from vocabshift.storage import output\n"
        "rename = output._replace\n"
        "def killed(*paths):\n"
        f"    {rename}os.kill(os.getpid(), signal.SIGKILL)\n"
        "output._replace = killed\n"
        f"with output.atomic_folder({str(tmp_path / 'out')!r}) as partial:\n"
        "    (partial / 'file').write_text('old')\n"
    )
    assert -9 == subprocess.run([sys.executable, "-c", code], check=False).returncode
    assert (tmp_path / "out").exists() == (moment == "after")
    if moment == "after":
        assert {"file": "old"} == contents(tmp_path / "out")
        (tmp_path / "out.partial").mkdir()
        (tmp_path / "out.partial" / "notes").write_text("mine", encoding="utf-8")
        with pytest.raises(FileExistsError, match="somebody else"):
            write(tmp_path / "out", "new", force=True)
    else:
        write(tmp_path / "out", "new")
        assert {"out/file": "new"} == contents(tmp_path)


def test_a_folder_that_is_just_renamed_is_respected(tmp_path: Path) -> None:
    partial = partial_with_lock(tmp_path / "out", f"{socket.gethostname()} {os.getppid()}")
    (partial / ".lock").rename(output._lock_aside(partial))
    with pytest.raises(FileExistsError, match="is being written"), atomic_folder(tmp_path / "out"):
        pass


def test_files_of_somebody_else_in_the_scratch_folder_are_left_alone(tmp_path: Path) -> None:
    """A DIR.partial without our lock is not ours to remove."""
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "thesis").write_text("mine")
    with pytest.raises(FileExistsError, match="somebody else"), atomic_folder(tmp_path / "out"):
        pass
    assert "mine" == (tmp_path / "out.partial" / "thesis").read_text()


def test_a_folder_named_old_is_left_alone(tmp_path: Path) -> None:
    """The old folder is moved aside under a name that nobody has."""
    for name in ("out", "out.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    with atomic_folder(tmp_path / "out", force=True) as partial:
        (partial / "file").write_text("new")
    assert "new" == (tmp_path / "out" / "file").read_text()
    assert "out.old" == (tmp_path / "out.old" / "file").read_text()
    assert ["out", "out.old"] == sorted(path.name for path in tmp_path.iterdir())


def test_inputs_and_the_current_folder_are_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when asked to overwrite."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("text")
    with pytest.raises(ValueError, match="would replace the input"):
        check_free(tmp_path / "corpus", force=True, inputs=[tmp_path / "corpus" / "a.txt"])
    monkeypatch.chdir(tmp_path / "corpus")
    for place in (".", "..", tmp_path):
        with pytest.raises(ValueError, match="current folder"):
            check_free(place, force=True)


@pytest.mark.parametrize("moment", ["between", "after"])
def test_an_interruption_between_the_renames_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The old folder is put back, or the new one is there."""
    write(tmp_path / "out", "old")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> None:
        if self.name == "out.partial":
            if moment == "after":
                rename(self, target)
            raise KeyboardInterrupt
        rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", "new", force=True)
    assert {"out/file": "new" if moment == "after" else "old"} == contents(tmp_path)


def test_a_folder_that_appears_between_the_renames_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program's: the old folder stays where the error says."""
    write(tmp_path / "out", "old")
    rename = Path.rename

    def disturbed(self: Path, target: Path) -> None:
        rename(self, target)
        if self.name == "out":
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "other").write_text("other", encoding="utf-8")

    monkeypatch.setattr(Path, "rename", disturbed)
    with pytest.raises(OSError, match=r"out\.old-"):
        write(tmp_path / "out", "new", force=True)
    assert ["old", "other"] == sorted(contents(tmp_path).values())


def test_what_cannot_be_removed_of_the_old_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output is complete: no error."""
    write(tmp_path / "out", "old")
    monkeypatch.setattr(output.shutil, "rmtree", lambda *_, **__: None)
    with pytest.warns(UserWarning, match=r"out is complete; .* left in .*out\.old-"):
        write(tmp_path / "out", "new", force=True)
    assert {"file": "new"} == contents(tmp_path / "out")


def test_a_part_of_a_model_is_no_place_for_a_report(tmp_path: Path) -> None:
    """Not even when asked to overwrite; an older report is."""
    for name in ("tokenizer.json", "report.jsonl"):
        (tmp_path / name).write_text("old")
    with pytest.raises(ValueError, match="may be a part of the input"):
        check_free_file(tmp_path / "tokenizer.json", force=True, inputs=[tmp_path])
    check_free_file(tmp_path / "report.jsonl", force=True, inputs=[tmp_path])


def test_two_processes_that_write_one_file_do_not_mix(tmp_path: Path) -> None:
    """Each writes the whole of its text; a file of the user's beside it stays."""
    (tmp_path / "out.txt.partial").write_text("mine")
    code = (
        "import sys\nfrom pathlib import Path\nfrom vocabshift.storage.output import write_whole\n"
        "for _ in range(50): write_whole(Path(sys.argv[1]), sys.argv[2] * 300_000)\n"
    )
    arguments = [[sys.executable, "-c", code, str(tmp_path / "out.txt"), x] for x in "ab"]
    processes = [subprocess.Popen(each) for each in arguments]
    seen = set()
    while any(process.poll() is None for process in processes):
        if (tmp_path / "out.txt").exists():
            seen.add((tmp_path / "out.txt").read_text())
    assert [0, 0] == [process.wait() for process in processes]
    seen.add((tmp_path / "out.txt").read_text())
    assert seen <= {"a" * 300_000, "b" * 300_000}
    assert {"out.txt", "out.txt.partial"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_named_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own error names no file."""
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: os.write(full.fileno(), b"x"))
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(OSError, match=r"space.*out"),
    ):
        write_whole(tmp_path / "out", "text")
    assert [] == list(tmp_path.iterdir())


def checkpointed(folder: Path, error: type[BaseException] | None = None, **options: bool) -> None:
    """A run that finishes one phase, begins a second, and fails or not."""
    with atomic_folder(folder, keep_checkpoints=True, **options) as partial:
        (partial / "file").write_text("half", encoding="utf-8")
        for name in ("count", ".stage 1"):
            (partial / "checkpoints" / name).mkdir(parents=True)
            (partial / "checkpoints" / name / "data").write_text(name, encoding="utf-8")
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failing_run_keeps_its_checkpoints_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    with pytest.raises(error) as caught:
        checkpointed(tmp_path / "out", error)
    assert {"out.partial/.lock": "", "out.partial/checkpoints/count/data": "count"} == contents(
        tmp_path
    )
    assert "same command again" in caught.value.__notes__[0]
    with atomic_folder(tmp_path / "out", keep_checkpoints=True) as partial:
        assert {"checkpoints/count/data", ".lock"} == set(contents(partial))
        (partial / "file").write_text("new", encoding="utf-8")
    assert {"out/file": "new"} == contents(tmp_path)


def test_no_resume_starts_afresh(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        checkpointed(tmp_path / "out", ValueError)
    with atomic_folder(tmp_path / "out", keep_checkpoints=True, resume=False) as partial:
        assert {".lock"} == set(contents(partial))


def test_a_run_that_keeps_no_checkpoints_clears_those_of_another(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        checkpointed(tmp_path / "out", ValueError)
    write(tmp_path / "out", "new")
    assert {"out/file": "new"} == contents(tmp_path)


def test_a_run_that_fails_before_its_first_checkpoint_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError) as caught,
        atomic_folder(tmp_path / "out", keep_checkpoints=True) as partial,
    ):
        (partial / "checkpoints" / ".count").mkdir(parents=True)
        raise ValueError
    assert [] == list(tmp_path.iterdir())
    assert not hasattr(caught.value, "__notes__")


def test_checkpoints_are_no_part_of_the_output(tmp_path: Path) -> None:
    checkpointed(tmp_path / "out")
    assert {"out/file": "half"} == contents(tmp_path)


def test_a_folder_of_that_name_is_part_of_an_output_without_checkpoints(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "out") as partial:
        (partial / "checkpoints").mkdir()
        (partial / "checkpoints" / "step-100").write_text("weights", encoding="utf-8")
    assert {"out/checkpoints/step-100": "weights"} == contents(tmp_path)


def test_a_killed_process_leaves_its_checkpoints_to_the_next(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from vocabshift.storage.output import atomic_folder\n"
        "with atomic_folder(sys.argv[1], keep_checkpoints=True) as partial:\n"
        "    (partial / 'half').write_text('done')\n"
        "    (partial / 'checkpoints' / 'count').mkdir(parents=True)\n"
        "    (partial / 'checkpoints' / 'count' / 'data').write_text('count')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=False)
    with atomic_folder(tmp_path / "out", keep_checkpoints=True) as partial:
        assert {"checkpoints/count/data", ".lock"} == set(contents(partial))
    assert {} == contents(tmp_path)


def test_a_living_process_keeps_its_checkpoints_for_itself(tmp_path: Path) -> None:
    owner = os.getppid()
    partial = partial_with_lock(tmp_path / "out", f"{socket.gethostname()} {owner}\n")
    (partial / "checkpoints").mkdir()
    with pytest.raises(FileExistsError, match=r"process .*empty the file .*\.lock"):
        checkpointed(tmp_path / "out")
    assert "done" == (partial / "half").read_text(encoding="utf-8")


def test_an_output_that_appears_while_its_lock_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner renames the folder; nothing is written elsewhere."""

    def finished(_lock: Path) -> None:
        if (tmp_path / "out.partial").exists():
            (tmp_path / "out.partial").rename(tmp_path / "done")

    monkeypatch.setattr(output, "_live_owner", finished)
    with pytest.raises(FileExistsError, match="was just taken by another process"):
        checkpointed(tmp_path / "out")
    assert {} == contents(tmp_path)


def test_of_two_processes_one_takes_a_dead_lock_over(tmp_path: Path) -> None:
    """Both begin at the same moment, many times; never do both write."""
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from vocabshift.storage.output import atomic_folder\n"
        "out, me = Path(sys.argv[1]), sys.argv[2]\n"
        "for turn in range(40):\n"
        "    while not (out.parent / f'go{turn}').exists():\n"
        "        (out.parent / f'ready{turn}-{me}').touch()\n"
        "    try:\n"
        "        with atomic_folder(out, force=True) as partial:\n"
        "            (partial / me).touch()\n"
        "            time.sleep(0.01)\n"
        "            assert {me, '.lock'} == {path.name for path in partial.iterdir()}\n"
        "    except FileExistsError:\n"
        "        pass\n"
    )
    work = tmp_path / "work"
    work.mkdir()
    processes = [
        subprocess.Popen([sys.executable, "-c", code, work / "out", name]) for name in ("a", "b")
    ]
    for turn in range(40):
        while not all((work / f"ready{turn}-{name}").exists() for name in ("a", "b")):
            assert all(process.poll() is None for process in processes)
        (work / f"go{turn}").touch()
    assert [0, 0] == [process.wait() for process in processes]


@pytest.mark.parametrize("is_folder", [True, False])
def test_links_in_the_place_of_scratch_files_are_not_followed(
    is_folder: bool, tmp_path: Path
) -> None:
    """A folder from elsewhere may bring them: the lock would be written over another file."""
    other = tmp_path / "other"
    other.mkdir()
    (other / ".lock").write_text("mine")
    partial = tmp_path / "out.partial"
    if is_folder:
        partial.symlink_to(other)
    else:
        partial.mkdir()
        (partial / ".lock").symlink_to(other / ".lock")
    with pytest.raises(FileExistsError, match="link"), atomic_folder(tmp_path / "out"):
        pass
    assert "mine" == (other / ".lock").read_text()


def test_links_in_the_place_of_unfinished_files_are_not_followed(tmp_path: Path) -> None:
    """Of one file alike."""
    (tmp_path / "mine").write_text("mine")
    partial = tmp_path / "out.txt.partial"
    partial.symlink_to(tmp_path / "mine")
    with pytest.raises(FileExistsError, match="link"), atomic_file(tmp_path / "out.txt"):
        pass
    write_whole(tmp_path / "out.txt", "text")
    assert ["mine", "text"] == [(tmp_path / name).read_text() for name in ("mine", "out.txt")]


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without file locks, where os.kill ends a process."""

    def refuse(*_: object) -> None:
        raise AssertionError("not on Windows")

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(output.fcntl, "flock", refuse)
    monkeypatch.setattr(os, "kill", refuse)


@pytest.mark.usefixtures("windows")
def test_outputs_without_file_locks(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(FileExistsError, match="exists already"):
        write(tmp_path / "out", "new")
    write(tmp_path / "out", "new", force=True)
    assert {"file": "new"} == contents(tmp_path / "out")
    with atomic_file(tmp_path / "file") as partial:
        partial.write_text("whole", encoding="utf-8")
    assert {"file", "out"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.usefixtures("windows")
def test_without_a_way_to_ask_every_other_process_is_alive(tmp_path: Path) -> None:
    partial_with_lock(tmp_path / "out", f"{socket.gethostname()} 4194305")
    with pytest.raises(FileExistsError, match="empty the file"):
        write(tmp_path / "out", "new")
