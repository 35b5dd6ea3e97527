"""Ctrl-C and SIGTERM during training: the step that runs is finished, then the state is saved.

Owns the handlers, for the length of a block. A second Ctrl-C acts as it did before, so that nobody
has to wait for a slow step. A second SIGTERM does nothing: Slurm signals every process of a job,
and the launcher among them passes its own on, so that each gets two at once.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_CAUGHT = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """`asked` turns true with the first signal. Only the main thread of a process has signals."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in _CAUGHT:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put_back(*_CAUGHT)

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.asked = True
        self._put_back(signal.SIGINT)

    def _put_back(self, *numbers: int) -> None:
        for number in numbers:
            if number in self._before:
                signal.signal(number, self._before.pop(number))
