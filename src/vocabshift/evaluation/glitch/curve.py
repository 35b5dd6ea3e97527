"""The reference curve: of the K rows nearest to unused ones, how many are of the late vocabulary?

Source: IST, section 4.5 and appendix C.3 (Figure 5): K = 10, 50, 100, … 400; of a subword
vocabulary the tokens of the last 10 % of the ids are counted, of a superword vocabulary its
superwords. Ranked are the tokens of the model without byte pieces: what was added knows its own
class. Knows nothing of thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]

K = (10, *range(50, 401, 50))
LAST_SHARE = 0.1
"""Of the ids of the model's vocabulary: what IST learns as superwords."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One K; `counts`: how many of the K most suspect tokens are in each group."""

    k: int
    counts: Mapping[str, int]


def reference_curve(
    values: npt.NDArray[np.float32], ranked: Bools, groups: Mapping[str, Bools]
) -> list[CurvePoint]:
    """The curve over the `ranked` rows (rows,), lowest value first; ties by id.

    A K above the number of ranked rows is left out.
    """
    ids = np.flatnonzero(ranked)
    order = ids[np.argsort(values[ids], kind="stable")]
    return [
        CurvePoint(k, {name: int(group[order[:k]].sum()) for name, group in groups.items()})
        for k in K
        if k <= len(order)
    ]


def last_of_vocabulary(in_model: Bools, share: float = LAST_SHARE) -> Bools:
    """(rows,) the last `share` of the ids that name a token of the model."""
    ids = np.flatnonzero(in_model)
    found = np.zeros(len(in_model), dtype=np.bool_)
    found[ids[len(ids) - round(share * len(ids)) :]] = True
    return found
