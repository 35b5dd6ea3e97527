"""Learning-rate schedules over the progress of a phase.

Owns their shapes: a linear warm-up, then a cosine to a final share (Llama and most others: 10 %),
or a plateau and a linear fall (WSD, arXiv:2404.06395 sec. 4). Progress is the share of the phase's
bytes of text, so that the rate does not depend on the tokenizer.
"""

from __future__ import annotations

import math


def learning_rate_share(
    progress: float,
    *,
    warmup: float,
    final_rate: float,
    schedule: str = "cosine",
    decay: float = 0.1,
) -> float:
    """Share of the highest learning rate at `progress`, both 0-1.

    `warmup`: share of the progress over which the rate climbs in a line from 0; `final_rate`:
    where it ends; `decay`: for "wsd", the share of the progress over which it falls in a line.
    """
    if progress < warmup:
        return progress / warmup
    if schedule == "wsd":
        left = 1 - progress
        return 1.0 if left >= decay else final_rate + (1 - final_rate) * max(left, 0.0) / decay
    if warmup == 1.0:
        return 1.0
    after = (progress - warmup) / (1 - warmup)
    return final_rate + (1 - final_rate) * (1 + math.cos(math.pi * after)) / 2
