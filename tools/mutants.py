"""Plants small faults into a copy of the sources and says which of them no test notices.

    python tools/mutants.py                   all of them: some hours of one core
    python tools/mutants.py --only cpt/       those whose name, reason or tests hold the word
    python tools/mutants.py --list

The faults stand in mutations/*.toml: text that occurs exactly once in the sources, what takes its
place, and the test files that must then fail. No path is named, so that files may move. The tree
itself is never changed. The exit status is 1 where a fault survived, and 2 where the table is stale
or the tests fail without any fault.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLES = Path(__file__).resolve().parent / "mutations"
SOURCES = (("src", ("*.py",)), ("cpp", ("*.cpp", "*.h")))
LIMIT = 1200  # seconds for the tests of one fault: beyond it they hang, which is noticed too
SHARED_DATA = ("train", "eval", "tasks", "tokenizers")
UNPACKED = "shared-data"  # beside the copies, so that not every run unpacks it

# An editable install would bring the sources of the tree instead of the copy's.
_PYTEST = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
import pytest
import vocabshift
assert vocabshift.__file__.startswith(sys.argv[1]), vocabshift.__file__
sys.exit(pytest.main(sys.argv[2:]))
"""


@dataclass(frozen=True)
class Mutation:
    """One fault."""

    name: str
    why: str  # what a user would suffer from it
    old: str  # found exactly once in all sources
    new: str
    tests: tuple[str, ...]  # file names without ".py", or NAME::test_function


@dataclass(frozen=True)
class Outcome:
    """What became of a fault."""

    name: str
    result: str  # "killed", "survived", "stale"
    detail: str  # the first test that failed, or what is wrong with the table


class StaleError(ValueError):
    """The table does not fit the tree."""


def read_table(folder: Path = TABLES) -> list[Mutation]:
    """All mutations, by file and then in their order."""
    found = []
    for file in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["mutation"]:
            name, tests = f"{file.stem}/{row['name']}", tuple(row["tests"])
            found.append(Mutation(name, row["why"], row["old"], row["new"], tests))
    return found


def read_sources(root: Path) -> dict[Path, str]:
    """Text of every source file, by its path."""
    return {
        path: path.read_text(encoding="utf-8")
        for folder, patterns in SOURCES
        for pattern in patterns
        for path in sorted((root / folder).rglob(pattern))
    }


def place_of(mutation: Mutation, sources: dict[Path, str]) -> Path:
    """The one file that holds the old text; StaleError where it is not found exactly once."""
    places = [path for path, text in sources.items() for _ in range(text.count(mutation.old))]
    if len(places) != 1:
        raise StaleError(f"its old text is found {len(places)} times")
    return places[0]


def tests_of(mutation: Mutation, root: Path) -> list[str]:
    """Arguments of pytest; StaleError for a test file that is not there."""
    found = []
    for name in mutation.tests:
        stem, _, function = name.partition("::")
        # Backwards by folder: unit before integration, for the quick ones find most.
        files = sorted((root / "tests").rglob(f"{stem}.py"), reverse=True)
        if not files:
            raise StaleError(f"there is no test file {stem}.py")
        found += [f"{file}::{function}" if function else str(file) for file in files]
    return found


def compiled_cores() -> list[Path]:
    """The compiled core beside the sources, or that of the installed package; else none."""
    installed = importlib.util.find_spec("vocabshift")
    folders = [ROOT / "src" / "vocabshift"]
    folders += map(Path, (installed and installed.submodule_search_locations) or ())
    found = [sorted(folder.glob("_core*.so")) for folder in folders]
    return next(filter(None, found), [])


class Copy:
    """A copy of the tree, in which faults are planted one after the other."""

    _has_fault = False  # the compiled core

    def __init__(self, folder: Path) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("\0")
        self.root = folder
        for file in filter(None, listed):
            if (ROOT / file).is_file():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, folder / file)
        self._built = False
        cores = compiled_cores()
        for core in cores:
            shutil.copy2(core, folder / "src" / "vocabshift" / core.name)
        if not cores:
            self._build()

    def pytest(self, tests: Sequence[str], limit: int | None = LIMIT) -> tuple[bool, str]:
        """Whether they pass, and the name of the first that does not."""
        paths = [str(self.root / "src"), os.environ.get("PYTHONPATH", "")]
        unpacked = self.root.parent / UNPACKED
        shared = ({"VOCABSHIFT_SHARED": str(unpacked)} if unpacked.exists() else {}) | os.environ
        shared["VOCABSHIFT_NIGHTLY"] = "all"  # every case and example that there is
        options = ["-q", "-x", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PYTEST, str(self.root), *options],
                cwd=self.root,
                env=shared | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, "they did not end"
        lines = [line for line in done.stdout.splitlines() if line[:5] in ("FAILE", "ERROR")]
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return done.returncode == 0, "".join(lines[:1] or last)

    def try_out(self, mutation: Mutation) -> Outcome:
        """Plant it, run its tests, and take it out again."""
        try:
            file = place_of(mutation, read_sources(self.root))
            tests = tests_of(mutation, self.root)
        except StaleError as error:
            return Outcome(mutation.name, "stale", str(error))
        text = file.read_text(encoding="utf-8")
        is_core = file.suffix != ".py"
        try:
            if self._has_fault and not is_core:
                self._build()
                self._has_fault = False
            _write(file, text.replace(mutation.old, mutation.new))
            if is_core:
                self._has_fault = True
                self._build()
            passed, detail = self.pytest(tests)
        except subprocess.CalledProcessError as error:
            return Outcome(mutation.name, "stale", f"it cannot be built: {error.stdout[-300:]}")
        finally:
            _write(file, text)  # a core is built again when tests need it: mostly with a new fault
        return Outcome(mutation.name, "survived" if passed else "killed", detail)

    def _build(self) -> None:
        build, python = self.root / "build" / "mutants", sys.executable
        if not self._built:
            found = subprocess.run(
                [python, "-m", "pybind11", "--cmakedir"], check=True, capture_output=True, text=True
            )
            _run(
                *("cmake", "-S", str(self.root / "cpp"), "-B", str(build), "-GNinja"),
                *("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"),  # quickly built
                f"-DPython_EXECUTABLE={python}",
                f"-Dpybind11_DIR={found.stdout.strip()}",
            )
        _run("cmake", "--build", str(build))
        self._built = True
        (core,) = build.glob("_core*.so")
        shutil.copy2(core, self.root / "src" / "vocabshift" / core.name)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _write(file: Path, text: str) -> None:
    """Compiled Python is removed: within a second it would pass for that of the new text."""
    file.write_text(text, encoding="utf-8")
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()


def try_all(mutations: Sequence[Mutation], jobs: int, *, quiet: bool) -> list[Outcome]:
    """Outcomes in the order of the mutations, each told when it is known."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        if (ROOT.parent / "shared").is_dir():
            (Path(folder) / "shared").symlink_to(ROOT.parent / "shared")
        unpack = ROOT.parent / "shared" / "data" / "unpack.sh"
        if unpack.exists() and "VOCABSHIFT_SHARED" not in os.environ:
            _run(str(unpack), str(Path(folder) / UNPACKED), *SHARED_DATA)
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        trees = [Copy(Path(folder) / str(number)) for number in range(jobs)]

        def one(mutation: Mutation) -> Outcome:
            copy = copies.get()
            try:
                outcome = copy.try_out(mutation)
            finally:
                copies.put(copy)
            if not quiet:
                print(f"{outcome.result:9} {outcome.name}  {outcome.detail[:110]}", flush=True)
            return outcome

        with ThreadPoolExecutor(jobs) as pool:
            shares = [_tests_of_all(mutations, tree.root)[i::jobs] for i, tree in enumerate(trees)]
            run = [(tree, tests) for tree, tests in zip(trees, shares, strict=True) if tests]
            found = pool.map(lambda pair: pair[0].pytest(pair[1], limit=None), run)
            failed = [detail for passed, detail in found if not passed]
            if failed:
                raise SystemExit(f"the tests fail without any fault: {'; '.join(failed)}")
            for tree in trees:
                copies.put(tree)
            return list(pool.map(one, mutations))


def _tests_of_all(mutations: Sequence[Mutation], root: Path) -> list[str]:
    known = set()
    for mutation in mutations:
        with suppress(StaleError):
            known.update(tests_of(mutation, root))
    return sorted(known)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="WORD", help="those whose name, reason or tests hold it")
    parser.add_argument("--list", action="store_true", help="print the table, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="copies at a time")
    args = parser.parse_args(argv)
    chosen = [
        each
        for each in read_table()
        if args.only is None or args.only in " ".join((each.name, each.why, *each.tests))
    ]
    if args.list:
        for each in chosen:
            print(f"{each.name:32} {', '.join(each.tests):40} {each.why}")
        return 0
    outcomes = try_all(chosen, max(1, args.jobs), quiet=args.json)
    if args.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    else:
        for result in ("survived", "stale"):
            names = [outcome.name for outcome in outcomes if outcome.result == result]
            print(f"{result}: {len(names)} of {len(outcomes)} {' '.join(names)}")
    results = {outcome.result for outcome in outcomes}
    return 2 if "stale" in results else int("survived" in results)


if __name__ == "__main__":
    sys.exit(main())
