"""Fast against slow for as long as you like: the property tests, with seeds that nobody has seen.

    python benchmarks/fuzz.py --minutes 60
    python benchmarks/fuzz.py --minutes 10 --only encoder superword

`make test` looks at the same examples in every run. Here every drawn test (above all the core
against tests/reference and against `tokenizers`) gets fresh text of many scripts, patterns and
options, in an order that changes, until the time is over: `make fuzz`. The first difference ends
the run, with the smallest case that shows it and a command that shows it again; write that case
above the test as @example. The last line says how many cases were compared.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = Path("tests")
EFFORT = "2"  # times the examples of `make test`; any number makes Hypothesis draw anew


class Fuzz:
    """A pytest plugin for one round: what is run, in which order, counted, and no longer than."""

    def __init__(self, seed: int, deadline: float, only: list[str]) -> None:
        self.seed, self.deadline, self.only = seed, deadline, only
        self.cases: Counter[str] = Counter()
        self.failed: str | None = None

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Tests that draw their cases and need no data, shuffled."""
        kept = [item for item in items if self._is_wanted(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        random.Random(self.seed).shuffle(kept)
        items[:] = kept
        counted: set[int] = set()
        for item in kept:
            handle = item.obj.hypothesis  # one for all parameters of a test
            if id(handle) not in counted:
                counted.add(id(handle))
                handle.inner_test = self._counting(item, handle.inner_test)

    def _is_wanted(self, item: Any) -> bool:
        draws = hasattr(item.obj, "hypothesis") and item.get_closest_marker("shared") is None
        return draws and (not self.only or any(word in item.nodeid for word in self.only))

    def _counting(self, item: Any, test: Any) -> Any:
        @functools.wraps(test)
        def counting(*args: Any, **kwargs: Any) -> Any:
            self.cases[item.path.stem.removeprefix("test_")] += 1
            return test(*args, **kwargs)

        return counting

    def pytest_runtest_logfinish(self) -> None:
        """The end of the time, looked at between two tests."""
        if time.monotonic() > self.deadline:
            self.session.shouldstop = "the time is over"

    def pytest_sessionstart(self, session: Any) -> None:
        self.session = session

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def run_round(seed: int, deadline: float, only: list[str]) -> Fuzz:
    """All tests once."""
    fuzz = Fuzz(seed, deadline, only)
    options = [
        "-q",
        "-x",
        "--no-header",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    folder = str(ROOT / TESTS)
    status = pytest.main([*options, f"--hypothesis-seed={seed}", folder], plugins=[fuzz])
    if status not in (
        pytest.ExitCode.OK,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.INTERRUPTED,
    ):
        raise SystemExit(f"pytest ended with {status!r}")
    return fuzz


def main() -> None:
    """Rounds until the time is over or something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, help="of the first round; default: the clock")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of tests")
    args = parser.parse_args()
    os.chdir(ROOT)
    os.environ["VOCABSHIFT_EXAMPLES"] = EFFORT
    start = time.monotonic()
    seed = time.time_ns() % 2**32 if args.seed is None else args.seed
    cases: Counter[str] = Counter()
    rounds = 0
    while (left := start + 60 * args.minutes - time.monotonic()) > 0:
        fuzz = run_round(seed + rounds, time.monotonic() + left, args.only)
        cases += fuzz.cases
        rounds += 1
        print(f"round {rounds}, seed {fuzz.seed}: {sum(fuzz.cases.values()):,} cases", flush=True)
        if fuzz.failed:
            again = f"VOCABSHIFT_EXAMPLES={EFFORT} python -m pytest --hypothesis-seed={fuzz.seed}"
            raise SystemExit(f"a difference; to see it again: {again} '{fuzz.failed}'")
        if not fuzz.cases:
            raise SystemExit("no test was run; look at --only")
    for name, count in sorted(cases.items()):
        print(f"{count:>10,} {name}")
    minutes = (time.monotonic() - start) / 60
    print(f"{sum(cases.values()):,} cases in {minutes:.1f} minutes, no difference")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    main()
