"""How a training run is carried out: threads, memory, progress, checkpoints, the clock.

None of it changes what is learned; where a memory budget does, the report says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vocabshift.checkpoints import Checkpoints
from vocabshift.trainers.trainer import Progress, Stopwatch


@dataclass
class Work:
    """The circumstances of one run."""

    threads: int = 1
    progress: Progress | None = None
    memory_bytes: int = 0
    """What training may take, roughly; 0: as much as it likes."""
    checkpoints: Checkpoints = field(default_factory=lambda: Checkpoints(None, None))
    folder: Path | None = None
    """Where there is room for temporary files; None: the system's place for them."""
    watch: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}; give at least 1")
        if 0 < self.memory_bytes < MIN_MEMORY:
            raise ValueError(
                f"a memory budget of {self.memory_bytes:,} bytes is too small to work in; give at "
                f"least {MIN_MEMORY:,} (--memory 64MB)"
            )

    def in_phase(self, phase: str) -> Callable[[int, int | None], None] | None:
        """`progress` with its first argument filled in."""
        if self.progress is None:
            return None
        progress = self.progress
        return lambda done, total: progress(phase, done, total)

    def tell(self, phase: str, done: int, total: int) -> None:
        """Report progress, where anyone listens."""
        if self.progress is not None:
            self.progress(phase, done, total)

    def share_of_memory(self, share: float) -> int:
        """Part of the budget for one structure, in bytes; 0 where there is no budget."""
        return int(self.memory_bytes * share)


MIN_MEMORY = 64_000_000
"""Smallest memory budget, in bytes."""
