"""Merges that a trainer put together itself, in the form in which the core hands over a stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core


@dataclass(frozen=True, slots=True)
class LearnedMerges:
    """What the finished tokenizer is made from: the part of `_core.Trained` that it needs."""

    tokens: list[bytes]  # by id
    merges: NDArray[np.uint32]  # (n, 3): left, right and product id
    stopped: _core.Stopped
    training_tokens: int = 0  # of all documents, unweighted; read from the last stage


def as_trained(stages: list[LearnedMerges]) -> list[_core.Trained]:
    """The stages, for what asks for the core's own: they answer to the same names."""
    return cast("list[_core.Trained]", stages)
