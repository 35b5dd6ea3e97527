"""Faults at drawn moments: is any output lost, and does the same command make the same bytes?

    python benchmarks/faults.py count train encode --trials 20 --seed 1

Each trial draws a fault and a moment of the run, half of them from when it begins to write: SIGKILL
(also while it replaces an older output: `replace`), SIGINT, too little memory (RLIMIT_AS), an input
that vanishes, a second process with the same output, and as root a full disk, one that is read-only
from the start and one that becomes so (small tmpfs mounts). A fault is `late` if the run had ended.
Afterwards the output must be missing or complete (of `replace`: complete); anything else is `lost`.
Then the fault is repaired and the command runs again, which must make the bytes of an undisturbed
run (`same`). Two undisturbed runs say which files differ by themselves, such as a record with the
time in it. Texts are those of the demo, models are tiny and random.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import smoke

_TEXT = ["hi=hi.txt", "en=en.txt"]
_CORPUS = ["--corpus", *_TEXT]
VERBS: dict[str, list[str]] = {  # OUT is where the output goes
    "count": ["count", *_TEXT, "-o", "OUT"],
    "train": ["train", "--recipe", "ist", *_CORPUS, "--vocab-size", "2000", "-o", "OUT"],
    "extend": ["extend", "first", *_CORPUS, "--n-tokens", "60", "-o", "OUT"],
    "prune": ["prune", "first", "--corpus", "en=en.txt", "--n-tokens", "60", "-o", "OUT"],
    "encode": ["encode", "first", *_TEXT, "-o", "OUT"],
    "transfer": ["transfer", "model", "second", "-o", "OUT"],
    "convert": ["convert", "model", "--dtype", "F16", "-o", "OUT.gguf"],
    "cpt": ["cpt", "cpt.toml", "out=OUT"],
}
READ = {"transfer": "model", "convert": "model"}
"""What each verb reads and `vanish` takes away, where it is not en.txt."""
FAULTS = ["kill", "interrupt", "memory", "vanish", "twice", "replace"]
AS_ROOT = ["full", "read-only", "becomes read-only"]
FROM_THE_START = ["memory", *AS_ROOT[:2]]
NOT_FOR = {"cpt": ["replace"]}  # its folder grows, and is not replaced
_MODELS = {"transfer", "convert", "cpt"}
_MOST_SECONDS = 300


class Trials:
    """Runs of one verb in one folder of inputs."""

    def __init__(self, verb: str, folder: Path, draw: random.Random) -> None:
        self.words, self.folder, self.draw = VERBS[verb], folder, draw
        self.input = folder / READ.get(verb, "en.txt")
        self.whole, self.writing = 0.0, 0.0  # seconds of a run, and of it from its first file on
        first = self.digests(self.undisturbed("first-run"))
        second = self.digests(self.undisturbed("second-run"))
        self.wanted = {name: sum_ for name, sum_ in first.items() if second.get(name) == sum_}
        self.names = set(first)

    def start(self, place: Path, *more: str, memory: int = 0) -> subprocess.Popen[bytes]:
        words = [*(word.replace("OUT", str(place / "out")) for word in self.words), *more]
        run = subprocess.Popen(
            [sys.executable, "-m", "vocabshift", *words],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if memory:
            resource.prlimit(run.pid, resource.RLIMIT_AS, (memory, memory))
        return run

    def undisturbed(self, name: str) -> Path:
        place = self.folder / name
        place.mkdir()
        begun = time.perf_counter()
        run = self.start(place)
        _wait_for_a_file(run, place)
        written = time.perf_counter()
        said = self.end(run)
        self.whole, self.writing = (time.perf_counter() - since for since in (begun, written))
        if run.returncode != 0:
            raise SystemExit(f"{' '.join(self.words)} fails undisturbed: {said}")
        return place

    @staticmethod
    def end(run: subprocess.Popen[bytes]) -> str:
        said = run.communicate(timeout=_MOST_SECONDS)[1].decode(errors="replace")
        return said.strip().splitlines()[-1] if said.strip() else ""

    @staticmethod
    def digests(place: Path) -> dict[str, str]:
        """Checksums of the output's files, without those of unfinished work."""
        return {
            str(file.relative_to(place)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(place.rglob("*"))
            if file.is_file() and ".partial" not in str(file.relative_to(place))
        }

    def is_complete(self, place: Path) -> bool:
        found = self.digests(place)
        return self.wanted.items() <= found.items() and set(found) == self.names

    def trial(self, fault: str, place: Path) -> tuple[str, str]:
        """What became of the output ("lost", "late" or else), and of the command afterwards."""
        self.prepare(fault, place)
        more = ["--force"] if fault == "replace" else []
        # With 128 to 160 MiB, OpenBLAS asks for memory forever while NumPy is imported.
        memory = self.draw.randint(4, 30) << 26 if fault == "memory" else 0
        runs = [self.start(place, *more, memory=memory)]
        if self.draw.random() < 0.5:
            time.sleep(self.draw.uniform(0, self.whole))
        else:
            _wait_for_a_file(runs[0], place, "*.partial*" if more else "*")
            time.sleep(self.draw.uniform(0, self.writing))
        is_late = runs[0].poll() is not None and fault not in FROM_THE_START
        self.inject(fault, place, runs)
        for run in runs:
            self.end(run)
        kept = "complete" if self.is_complete(place) else "none"
        if kept == "none" and (more or self.digests(place)):
            return "lost", "lost"
        self.repair(fault, place)
        said = "" if kept == "complete" and not more else self.end(self.start(place, *more))
        again = "same" if self.is_complete(place) else said or "other bytes"
        return "late" if is_late else kept, again

    def prepare(self, fault: str, place: Path) -> None:
        """What a fault needs before the run."""
        if fault == "full":
            _mount(place, self.draw.choice([8, 40, 100, 200]) << 10)
        elif fault in AS_ROOT:
            _mount(place, 64 << 20)
        if fault == "read-only":
            _remount_read_only(place)
        elif fault == "replace":
            shutil.copytree(self.folder / "first-run", place, dirs_exist_ok=True)

    def inject(self, fault: str, place: Path, runs: list[subprocess.Popen[bytes]]) -> None:
        """The fault, at its moment; it may add a run."""
        if fault in ("kill", "interrupt", "replace"):
            runs[0].send_signal(signal.SIGINT if fault == "interrupt" else signal.SIGKILL)
        elif fault == "vanish":
            self.input.rename(self.folder / "away")
        elif fault == "twice":
            runs.append(self.start(place))
        elif fault == "becomes read-only":
            _remount_read_only(place)  # refused while a file is open there

    def repair(self, fault: str, place: Path) -> None:
        """Undo what would stop the next run."""
        if fault == "vanish":
            (self.folder / "away").rename(self.input)
        elif fault in AS_ROOT:
            subprocess.run(["mount", "-o", "remount,rw,size=64M", place], check=True)


def _wait_for_a_file(run: subprocess.Popen[bytes], place: Path, name: str = "*") -> None:
    """Until there is one of that name, or the run has ended."""
    while run.poll() is None and not any(place.glob(name)):
        time.sleep(0.002)


def _remount_read_only(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", place], check=False, capture_output=True)


def _mount(place: Path, size: int) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verbs", nargs="*", metavar="VERB", help=f"of {', '.join(VERBS)} (all)")
    parser.add_argument("--trials", type=int, default=20, help="of each verb")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    faults = FAULTS + (AS_ROOT if os.geteuid() == 0 else [])
    verbs = args.verbs or list(VERBS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        smoke.write_inputs(folder)
        for command in smoke.STEPS["train"]:
            subprocess.run([sys.executable, "-m", "vocabshift", *command], cwd=folder, check=True)
        if _MODELS & set(verbs):
            subprocess.run([sys.executable, "-c", smoke.MAKE_MODEL], cwd=folder, check=True)
        for verb in verbs:
            draw = random.Random(f"{args.seed} {verb}")
            of_verb = folder / verb
            shutil.copytree(folder, of_verb, ignore=shutil.ignore_patterns(*VERBS))
            trials, counts = Trials(verb, of_verb, draw), Counter[str]()
            own = [fault for fault in faults if fault not in NOT_FOR.get(verb, ())]
            for number in range(args.trials):
                fault = own[number % len(own)]
                place = of_verb / f"trial-{number}"
                place.mkdir()
                kept, again = trials.trial(fault, place)
                counts.update([fault, kept])
                if again not in ("same", "lost"):
                    counts["bad"] += 1
                if again != "same":
                    print(f"  {verb}, {fault}, trial {number}: {again}", flush=True)
                if fault in AS_ROOT:
                    subprocess.run(["umount", place], check=True)
            print(
                f"{verb}: {args.trials} injected "
                f"({', '.join(f'{counts[fault]} {fault}' for fault in own)}); "
                f"late {counts['late']}, survived {counts['complete']}, lost {counts['lost']}, "
                f"resumed to identical bytes {counts['none'] - counts['bad']}, "
                f"other {counts['bad']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
