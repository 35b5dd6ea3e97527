"""When a run has gone wrong: a loss that is no number, or far above what it was.

Owns the rule. A step is refused where loss or gradient norm is not finite, or where the loss is
above `factor` times the median of the last WINDOW losses of the phase and one nat above it too,
once there are LEAST of them and the step is a whole batch. The second condition keeps small losses,
which vary much by proportion, from stopping a run that is well.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Iterable

WINDOW = 100
LEAST = 20
_NATS_ABOVE = 1.0


class SpikeWatch:
    """The losses of a phase, as far back as the rule looks."""

    def __init__(self, factor: float, losses: Iterable[float] = ()) -> None:
        """`factor` of 0: only what is not finite is wrong."""
        self._factor = factor
        self.losses = deque(losses, maxlen=WINDOW)

    def wrong(self, loss: float, gradient_norm: float, *, is_whole: bool = True) -> str | None:
        """What is wrong with a step; None, and the loss is remembered, where nothing is.

        Of a phase's last step, which may hold a single hard sequence, `is_whole` is False.
        """
        if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
            return "diverged"
        if not is_whole:
            return None
        if self._factor and len(self.losses) >= LEAST:
            median = statistics.median(self.losses)
            if loss > self._factor * median and loss > median + _NATS_ABOVE:
                return f"spiked above {self._factor:g} times the median loss of {median:.3f}"
        self.losses.append(loss)
        return None
