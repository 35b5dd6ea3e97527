"""Long work: the one signature of every `progress` argument, its cores and its memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Called while work goes on; cheap to call often, and never called from two threads at once.

    A function of these three arguments is one; `None` stands for nobody listening.
    """

    def __call__(self, phase: str, done: int, total: int | None, /) -> None:
        """`done` of `total` units of `phase` ("count", "tokenizers", the name of a model) are done.

        Units are those of the phase: bytes, lines, tokens, documents. `total` is None where it is
        not known.
        """


def renamed(progress: Progress | None, phase: str) -> Progress | None:
    """`progress` with every call reported as `phase`: for a step of a larger piece of work."""
    if progress is None:
        return None
    report = progress
    return lambda _, done, total: report(phase, done, total)


PhaseProgress = Callable[[int, int | None], None]
"""Progress within one phase, as the core calls it: units done, and units in all where known."""


def in_phase(progress: Progress | None, phase: str) -> PhaseProgress | None:
    """`progress` with its first argument filled in. The core reports an unknown total as 0."""
    if progress is None:
        return None
    report = progress
    return lambda done, total: report(phase, done, total or None)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_rss_bytes() -> int:
    """High-water mark of the process's memory, in bytes; 0 on Windows."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
