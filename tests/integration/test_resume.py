"""Killed at any moment, the same command goes on, and the output is what it would have been.

`kill -9` itself: a process that does nothing more. Where it happens is decided in two ways. At the
seams: the process kills itself right before or right after it has made a phase a finished
checkpoint. And anywhere: the kernel ends it after some of the CPU time that the command needs. The
processes are forks of one that has imported the package; those on a full disk are real starts.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warm_python import WarmProcess, WarmPython

# The command line, with a trap in the store: KILL names the phase, WHEN the side of the rename.
# Every phase that is finished is told on stderr as "finished PHASE". AFTER: seconds of CPU time;
# then the kernel ends the process, by a signal that it does not handle.
_TRAPPED = """
import os, signal, sys
from pathlib import Path
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.cli.main import main

phase, when = os.environ.get("KILL"), os.environ.get("WHEN")
signal.setitimer(signal.ITIMER_PROF, float(os.environ.get("AFTER", 0)))
commit, rename = Checkpoints.commit, Path.rename

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def trapped_rename(self, target):
    if when == "before" and self.name == f".{phase}":
        die()
    rename(self, target)
    if when == "after" and self.name == f".{phase}":
        die()

def told_commit(self, name, info=None):
    if when == "writing" and name == phase:
        die()
    saved = commit(self, name, info)
    if self.is_kept:
        sys.stderr.write(f"finished {name}\\n")
    return saved

Checkpoints.commit, Path.rename = told_commit, trapped_rename
sys.exit(main(sys.argv[1:]))
"""
MOMENTS = ("writing", "before", "after")

Command = Callable[[Path], list[str]]
"""The words of a verb that writes to the folder given."""


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The process that all others are forks of."""
    _warm.append(WarmPython(tmp_path_factory.mktemp("warm")))
    yield
    _warm.pop().close()


_warm: list[WarmPython] = []


def start(words: list[str], **how: str) -> WarmProcess:
    return _warm[0].start(["-c", _TRAPPED, *words], {**os.environ, **how})


def run_to_the_end(words: list[str]) -> tuple[list[str], float]:
    """The phases that it did, and the CPU time that it took."""
    process = start(words)
    _, errors = process.communicate()
    assert 0 == process.returncode, errors
    told = [line for line in errors.splitlines() if line.startswith("finished ")]
    return [line.removeprefix("finished ") for line in told], process.cpu_seconds


def finish(words: list[str]) -> list[str]:
    """Run to the end; the phases that it did."""
    return run_to_the_end(words)[0]


def kill_at(words: list[str], phase: str, when: str) -> None:
    process = start(words, KILL=phase, WHEN=when)
    _, errors = process.communicate()
    assert -signal.SIGKILL == process.returncode, errors


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def finished(out: Path) -> list[str]:
    """The checkpoints beside an output that is not there yet."""
    assert not out.exists()
    checkpoints = out.with_name(out.name + ".partial") / "checkpoints"
    if not checkpoints.exists():
        return []
    return sorted(path.name for path in checkpoints.iterdir() if not path.name.startswith("."))


def nothing_is_left(out: Path) -> bool:
    return [] == [path for path in out.parent.iterdir() if path.name.startswith(out.name + ".")]


def check_every_seam(command: Command, work: Path) -> None:
    """Kill at each seam of each phase; go on; compare all bytes and the phases that were done."""
    phases = finish(command(work / "undisturbed"))
    assert len(phases) >= 2
    expected = contents(work / "undisturbed")
    for number, phase in enumerate(phases):
        for when in MOMENTS:
            out = work / f"{phase} {when}"
            kill_at(command(out), phase, when)
            done = number + (when == "after")
            assert len(finished(out)) <= done  # a phase may drop an earlier one
            assert (when == "after") == (phase in finished(out))
            assert phases[done:] == finish(command(out))
            assert expected == contents(out)
            assert nothing_is_left(out)


def check_kills_in_a_row(command: Command, work: Path) -> None:
    """Every run is killed as soon as it has done one phase more, until none is left to do."""
    phases = finish(command(work / "undisturbed"))
    assert phases
    for phase in phases:
        kill_at(command(work / "out"), phase, "after")
        assert phase in finished(work / "out")
    assert [] == finish(command(work / "out"))
    assert contents(work / "undisturbed") == contents(work / "out")


def is_killed_at_work(words: list[str], out: Path, expected: dict[str, bytes], when: float) -> bool:
    """Whether it ends after `when` seconds of CPU time; else its output, whole, is put away."""
    process = start(words, AFTER=str(when))
    _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGPROF), errors
    if not out.exists():
        assert process.returncode != 0
        return True
    assert expected == contents(out)
    shutil.rmtree(out)
    return False


def check_any_moment(command: Command, work: Path, *, times: int) -> None:
    """Kill after a random part of its CPU time, and what goes on once more, then let it end."""
    _, seconds = run_to_the_end(command(work / "undisturbed"))
    expected = contents(work / "undisturbed")
    chance = random.Random(1)
    begun = 0
    for turn in range(times):
        out = work / f"out{turn}"
        words = command(out)
        when = seconds * (turn + chance.random()) / times  # early and late ones
        while not is_killed_at_work(words, out, expected, when):
            when *= 0.8  # no two runs take the same time
        begun += out.with_name(out.name + ".partial").exists()
        is_killed_at_work(words, out, expected, chance.uniform(0.01, seconds))
        finish(words)
        assert expected == contents(out)
        assert nothing_is_left(out)
    assert begun >= times // 2, "most were killed before they had begun"


def check_other_configs(command: Command, others: list[Command], work: Path) -> None:
    """What another command left is never used: the output is that of a run of its own."""
    last = finish(command(work / "undisturbed"))[-1]
    for number, other in enumerate(others):
        phases = finish(other(work / f"own{number}"))
        out = work / f"out{number}"
        kill_at(command(out), last, "after")
        assert last in finished(out)
        assert phases == finish(other(out))
        assert contents(work / f"own{number}") == contents(out)


# Written for this test; numbers make lines differ.
LINES = [
    "The ferry crosses the river at {0} and comes back at {1}.",
    "नाव नंबर {0} नदी पार करती है और {1} बजे लौटती है।",
    "படகு {0} ஆற்றைக் கடந்து {1} மணிக்குத் திரும்பும்.",
    "def crossing(n={0}):\n    return n + {1}",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "text.jsonl"
    rows = (LINES[n % 4].format(n * n % 997, n % 24) for n in range(4000))
    path.write_text(
        "".join(json.dumps({"text": row}, ensure_ascii=False) + "\n" for row in rows),
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def tokenizer(corpus: Path) -> Path:
    folder = corpus.parent / "tokenizer"
    words = ["train", "--recipe", "bpe", "--corpus", str(corpus), "--vocab-size", "400"]
    finish([*words, "--special-tokens", "</s>", "-o", str(folder)])
    return folder


@pytest.fixture
def encode(corpus: Path, tokenizer: Path) -> Command:
    return encoder(corpus, tokenizer)


def encoder(corpus: Path, tokenizer: Path, *more: str) -> Command:
    words = ["encode", str(tokenizer), str(corpus), "--eos", "</s>", *more]
    if "--shard-tokens" not in more:
        words += ["--shard-tokens", "60000"]
    return lambda out: [*words, "-o", str(out)]


@pytest.mark.parametrize("form", ["arrow", pytest.param("numpy", marks=pytest.mark.nightly)])
def test_encode_goes_on_from_every_seam(
    corpus: Path, tokenizer: Path, tmp_path: Path, form: str
) -> None:
    check_every_seam(encoder(corpus, tokenizer, "--format", form), tmp_path)


def test_encode_survives_kills_in_a_row(encode: Command, tmp_path: Path) -> None:
    check_kills_in_a_row(encode, tmp_path)


def test_encode_survives_a_kill_at_any_moment(encode: Command, tmp_path: Path) -> None:
    check_any_moment(encode, tmp_path, times=6)


def test_encode_never_uses_the_shards_of_another_command(
    corpus: Path, tokenizer: Path, tmp_path: Path
) -> None:
    other_text = corpus.with_name("other.jsonl")
    other_text.write_bytes(corpus.read_bytes())
    others = [
        encoder(other_text, tokenizer),
        encoder(corpus, tokenizer, "--shard-tokens", "50000"),
        encoder(corpus, tokenizer, "--special-as-text"),
        encoder(corpus, tokenizer, "--no-resume"),
    ]
    check_other_configs(encoder(corpus, tokenizer), others, tmp_path)


def test_a_running_command_keeps_its_folder(encode: Command, tmp_path: Path) -> None:
    """The second one is refused in one line, and the first one's work is whole."""
    words = encode(tmp_path / "out")
    first = start(words)
    first.send_signal(signal.SIGSTOP)
    partial = tmp_path / "out.partial"
    while not (partial / "checkpoints").exists():
        first.send_signal(signal.SIGCONT)
        time.sleep(0.005)
        first.send_signal(signal.SIGSTOP)
        assert first.poll() is None, "it was done before it could be seen at work"
    second = start(words)
    _, errors = second.communicate()
    first.send_signal(signal.SIGCONT)
    first.communicate()
    assert (2, 0) == (second.returncode, first.returncode)
    assert f"is being written by process {first.pid}" in errors
    assert 1 == errors.count("\n")
    finish(encode(tmp_path / "undisturbed"))
    assert contents(tmp_path / "undisturbed") == contents(tmp_path / "out")


def trainer(recipe: str, corpus: Path, *more: str, size: str = "500") -> Command:
    words = ["train", "--recipe", recipe, "--corpus", f"mul={corpus}", "--vocab-size", size]
    return lambda out: [*words, *more, "-o", str(out)]


def test_training_goes_on_from_every_seam(corpus: Path, tmp_path: Path) -> None:
    """After counting, after stage 1, after the text was encoded for stage 2."""
    check_every_seam(trainer("ist", corpus), tmp_path)


@pytest.mark.parametrize("recipe", ["vocabshift", "parity"])
def test_training_on_two_languages_survives_kills_in_a_row(
    corpus: Path, tmp_path: Path, recipe: str
) -> None:
    """Recipe vocabshift: the weights of languages are a phase too. Recipe parity: counts and merges
    are by language, measured on parallel text, with superwords after them."""
    other = corpus.with_name("other.jsonl")
    other.write_bytes(b"".join(corpus.read_bytes().splitlines(keepends=True)[:500]))
    words = ["train", "--recipe", recipe, "--vocab-size", "500"]
    words += ["--corpus", f"eng={corpus}", f"hin={other}"]
    if recipe == "parity":
        parallel = [corpus.with_name(f"{name}.txt") for name in ("eng", "hin")]
        for number, file in enumerate(parallel):
            lines = [f"line {i} of the river, {'over' * number} and over" for i in range(40)]
            file.write_text("\n".join(lines), encoding="utf-8")
        words += [
            "--parallel",
            *(f"{file.stem}={file}" for file in parallel),
            "--transition",
            "0.9",
        ]
    check_kills_in_a_row(lambda out: [*words, "-o", str(out)], tmp_path)


@pytest.mark.parametrize(
    ("recipe", "more"),
    [
        ("bpe", ()),
        ("bpe", ("--memory", "100MB")),
        ("superbpe", ("--special-tokens", "river")),
        ("ist", ("--normalizer", "nfc", "--grapheme-safe")),
        ("ist", ("--memory", "100MB", "-j", "2")),
        ("matra", ()),
        ("picky", ()),
    ],
)
def test_training_survives_kills_in_a_row(
    corpus: Path, tmp_path: Path, recipe: str, more: tuple[str, ...]
) -> None:
    check_kills_in_a_row(trainer(recipe, corpus, *more), tmp_path)


def test_training_survives_a_kill_at_any_moment(corpus: Path, tmp_path: Path) -> None:
    check_any_moment(trainer("ist", corpus), tmp_path, times=4)


def test_training_never_uses_the_checkpoints_of_another_command(
    corpus: Path, tmp_path: Path
) -> None:
    other_text = corpus.with_name("fewer.jsonl")
    other_text.write_bytes(b"".join(corpus.read_bytes().splitlines(keepends=True)[:3000]))
    others = [
        trainer("ist", other_text),
        trainer("ist", corpus, size="510"),
        trainer("ist", corpus, "--transition", "0.8"),
        trainer("ist", corpus, "--special-tokens", "river"),
        trainer("superbpe", corpus),
        trainer("ist", corpus, "--no-resume"),
    ]
    check_other_configs(trainer("ist", corpus), others, tmp_path)


_ON_A_FULL_DISK = """
mount -t tmpfs -o size="$SIZE" tiny "$DISK" || exit 1
"$@" >/dev/null 2>"$WORK/errors"
echo $? >"$WORK/status"
find "$DISK" -type f >"$WORK/left"
mount -o remount,size=64m "$DISK" && "$@" >/dev/null 2>"$WORK/errors again" || exit 1
cp -r "$DISK/out" "$WORK/out"
"""


@pytest.fixture(scope="module")
def may_mount(tmp_path_factory) -> None:
    """Skips where this process may not mount a small file system of its own."""
    disk = tmp_path_factory.mktemp("disk")
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "tiny", str(disk)]
    if (
        shutil.which("unshare") is None
        or subprocess.run(words, check=False, capture_output=True).returncode
    ):
        pytest.skip("no right to mount a small file system here")


@pytest.mark.no_tsan
@pytest.mark.usefixtures("may_mount")
@pytest.mark.parametrize(
    ("verb", "size"),
    [
        ("train", "400k"),
        ("encode", "24k"),
        pytest.param("train", "24k", marks=pytest.mark.nightly),
        pytest.param("encode", "400k", marks=pytest.mark.nightly),
    ],
)
def test_a_full_disk_is_told_and_the_same_command_goes_on(
    corpus: Path, tokenizer: Path, tmp_path: Path, verb: str, size: str
) -> None:
    """Nothing half-written is left; with more room the output is what it would have been."""
    # Few words and much text, so that what stage 2 reads is larger than what stage 1 does.
    chance = random.Random(2)
    words = " ".join(LINES).split()
    text = tmp_path / "text.txt"
    rows = (" ".join(chance.choices(words, k=12)) for _ in range(20_000))
    text.write_text("\n".join(rows), encoding="utf-8")
    command = trainer("ist", text) if verb == "train" else encoder(text, tokenizer)
    disk = tmp_path / "disk"
    disk.mkdir()
    run = subprocess.run(
        [
            *("unshare", "-rm", "sh", "-c", _ON_A_FULL_DISK, "sh"),
            *(sys.executable, "-m", "vocabshift", *command(disk / "out")),
        ],
        env={**os.environ, "SIZE": size, "DISK": str(disk), "WORK": str(tmp_path)},
        check=False,
    )
    assert 0 == run.returncode, (tmp_path / "errors again").read_text()
    errors = (tmp_path / "errors").read_text()
    assert 1 == errors.count("\n")
    assert "disk is full" in errors or "No space left on device" in errors
    assert "2\n" == (tmp_path / "status").read_text()
    left = (tmp_path / "left").read_text().splitlines()
    assert [] == [name for name in left if "/checkpoints/" not in name and ".lock" not in name]
    assert [] == [name for name in left if "/checkpoints/." in name]
    finish(command(tmp_path / "undisturbed"))
    assert contents(tmp_path / "undisturbed") == contents(tmp_path / "out")
