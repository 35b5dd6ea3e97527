"""Under-trained tokens of a model: indicators, references, classes, verification, verdicts.

The names of the indicators are here: the command line takes them and loads nothing else.
"""

from __future__ import annotations

AUTO, NORM, BIAS, DRIFT = "auto", "norm", "bias", "drift"
COSINE, CENTRED, WITHOUT_COMPONENT, DISTANCE = "cosine", "centred", "without-component", "distance"

OF_HEAD = (COSINE, CENTRED, WITHOUT_COMPONENT, DISTANCE)
"""Those that compare rows of the output head with unused ones."""

INDICATORS = (AUTO, NORM, *OF_HEAD, BIAS, DRIFT)
