"""Thresholds for suspect tokens, verdicts of the verification, and the action for each token.

Owns the thresholds with their reasons and the table of actions. Knows nothing of how an indicator
or a probability was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.glitch import classes

Floats = npt.NDArray[np.float32]

PERCENTILE = 2.0
"""Of the tokens, in per cent, that are candidates where no reference is (Land and Bartolo)."""

_ROUNDING = 1e-6  # float32: reference rows that are one another differ by no less

STRONG_VERIFIED, WEAK_VERIFIED = "strong_verified", "weak_verified"
WEAK_REJECTED, STRONG_REJECTED = "weak_rejected", "strong_rejected"
NOT_ENCODED = "verification_encoding_failed"
VERDICTS = {
    STRONG_VERIFIED: "never above 0.001: the model cannot say it",
    WEAK_VERIFIED: "never above 0.1",
    NOT_ENCODED: "no prompt that names it comes back as it",
    WEAK_REJECTED: "above 0.1",
    STRONG_REJECTED: "above 0.9: the model says it when asked",
}
"""Land and Bartolo's program, by the token's highest probability over all prompts and steps."""

PRUNE, REINITIALIZE, IGNORE = "prune", "re-initialize", "ignore"
ACTIONS = (PRUNE, REINITIALIZE, IGNORE)

_ADDED = "it was added, and only whoever writes it into text yields it"
_PART = "rare characters are made of it; ordinary text seldom needs it"
_HARMLESS = {
    **dict.fromkeys((classes.SPECIALS, classes.ADDED, classes.DUMMY, classes.NO_TOKEN), _ADDED),
    **dict.fromkeys((classes.BYTE, classes.PARTIAL), _PART),
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """Rows with a value up to it are suspect."""

    value: float
    why: str  # one sentence for people
    is_by_reference: bool


def threshold(values: Floats, evaluated: npt.NDArray[np.bool_], of_reference: Floats) -> Threshold:
    """From the reference if it has two rows, else the lowest 2 % of the evaluated rows."""
    n = len(of_reference)
    if n > 1:
        highest = float(of_reference.max())
        return Threshold(
            highest + _ROUNDING,
            f"the highest value among the {n} reference rows, each against the others: a token "
            f"that was never trained is one more of their kind and lies above it with a chance of "
            f"1 in {n + 1}",
            True,
        )
    lowest = float(np.percentile(values[evaluated], PERCENTILE)) if evaluated.any() else 0.0
    return Threshold(
        lowest,
        f"the lowest {PERCENTILE:g} % of the tokens that text yields (Land and Bartolo): "
        "candidates for --verify and no more, for nothing is known to be unused here",
        False,
    )


def verdict_of(max_probability: float, *, is_encoded: bool) -> str:
    """What the highest probability says."""
    if max_probability > 0.9:
        return STRONG_REJECTED
    if max_probability > 0.1:
        return WEAK_REJECTED
    if not is_encoded:
        return NOT_ENCODED
    return STRONG_VERIFIED if max_probability < 0.001 else WEAK_VERIFIED


def action_of(
    kind: str, *, is_suspect: bool, count: int | None, verdict: str | None
) -> tuple[str, str] | None:
    """What to do about a token, and why; None where nothing is the matter.

    `kind`: its class; `count`: in a corpus, None where there was none.
    """
    if kind in (classes.BY_MERGES, classes.BY_PIPELINE):
        return PRUNE, "no text yields it, whatever the model is trained on"
    if not is_suspect:
        return None
    harmless = _HARMLESS.get(kind)
    if harmless is None and verdict in (WEAK_REJECTED, STRONG_REJECTED):
        harmless = "the model says it when asked: the indicator was wrong"
    if harmless is not None:
        return IGNORE, harmless
    if count is None:
        return REINITIALIZE, "unlearned; --corpus would tell whether it is needed or can be pruned"
    if count == 0:
        return PRUNE, "unlearned, and the corpus never uses it"
    return REINITIALIZE, "unlearned, and the corpus uses it: give it a new row and train"
