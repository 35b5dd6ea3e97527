"""Measure programs side by side: each run a process of its own, the contestants alternating.

Owns timing (elapsed, CPU, peak memory above the start) and the table. A contestant is a function
that is called in a fresh process with the text's path and returns a checksum of what it made; one
whose checksum differs from the first contestant's is marked wrong, not slow. None: not comparable.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

Checksum = int | None
Kind = Literal["CPU", "elapsed"]  # of time
Work = Callable[[Path], Callable[[], Checksum | Callable[[], Checksum]]]
"""Prepares outside the clock (imports, loading); what it returns is timed and gives a checksum, or
a function that computes it when the clock has stopped."""


@dataclass(frozen=True)
class Run:
    elapsed: float  # seconds
    cpu: float  # seconds, all threads
    peak_mb: float  # high-water mark of the process
    checksum: int | None


def _child(work: Work, path: Path, pipe: Connection) -> None:
    timed = work(path)
    before, start = cpu_seconds(), time.perf_counter()
    result = timed()
    elapsed, cpu = time.perf_counter() - start, cpu_seconds() - before
    checksum = result() if callable(result) else result
    scale = 1 / 2**20 if sys.platform == "darwin" else 1 / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send(Run(elapsed, cpu, peak * scale, checksum))


def cpu_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_once(work: Work, path: Path) -> Run:
    """One run of a contestant in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(work, path, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise RuntimeError(f"{work} died with exit code {process.exitcode}") from None
    finally:
        process.join()


def compare(contestants: dict[str, Work], path: Path, runs: int) -> dict[str, list[Run]]:
    """`runs` rounds of all contestants in turn: A B A B …, so that drift hits all alike."""
    results: dict[str, list[Run]] = {name: [] for name in contestants}
    for _ in range(runs):
        for name, work in contestants.items():
            results[name].append(run_once(work, path))
    return results


def report(
    title: str,
    results: dict[str, list[Run]],
    n_bytes: int,
    *,
    wanted: Mapping[str, tuple[Kind, float]] | None = None,
) -> str:
    """Markdown table of medians; ratios are of elapsed and CPU time, paired round by round.

    `wanted`: of a contestant which ratio has to be at least how much.
    """
    first = next(iter(results))
    lines = [
        f"### {title}",
        "",
        f"| | elapsed s | CPU s | MB/s | peak MB | elapsed, times {first} | CPU, times {first} | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        elapsed = [
            run.elapsed / base.elapsed for run, base in zip(runs, results[first], strict=True)
        ]
        cpu = [run.cpu / base.cpu for run, base in zip(runs, results[first], strict=True)]
        median_elapsed = statistics.median(run.elapsed for run in runs)
        verdict = _verdict({run.checksum for run in runs}, results[first][0].checksum)
        kind, least = (wanted or {}).get(name, ("CPU", 0.0))
        if statistics.median(cpu if kind == "CPU" else elapsed) < least:
            verdict = f"{verdict} **missed**: {least:g} wanted in {kind} time".strip()
        lines.append(
            f"| {name} | {median_elapsed:.3f} | {statistics.median(run.cpu for run in runs):.3f} "
            f"| {n_bytes / 1e6 / median_elapsed:.1f} | {max(run.peak_mb for run in runs):.0f} "
            f"| {_spread(elapsed)} | {_spread(cpu)} | {verdict} |"
        )
    return "\n".join(lines) + "\n"


def _verdict(checksums: set[int | None], expected: int | None) -> str:
    if checksums == {None}:
        return "result not compared"
    return "" if checksums == {expected} else "**other result**"


def _spread(ratios: list[float]) -> str:
    middle = statistics.median(ratios)
    if len(ratios) == 1:
        return f"{middle:.1f}"
    return f"{middle:.1f} ({min(ratios):.1f}-{max(ratios):.1f})"


def machine() -> str:
    """One line about where this ran."""
    names = []
    for package in (
        "vocabshift",
        "tokenizers",
        "datasets",
        "rustbpe",
        "ffbpe",
        "gigabpe",
        "tiktoken",
        "fastokens",
        "gigatoken",
        "pyspark",
        "ray",
        "datatrove",
    ):
        try:
            names.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    load = os.getloadavg()[0]
    return (
        f"{platform.machine()}, {os.cpu_count()} CPUs, load {load:.1f}, "
        f"Python {platform.python_version()}, {', '.join(names)}, {time.strftime('%Y-%m-%d')}"
    )


def checksum_of(value: object) -> int:
    """A number that is the same in every process for equal JSON values."""
    import zlib

    return zlib.crc32(json.dumps(value, ensure_ascii=False).encode())
