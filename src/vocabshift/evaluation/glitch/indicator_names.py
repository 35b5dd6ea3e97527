"""The names of the indicators, as `find_glitch_tokens` and the command line take them."""

AUTO, NORM, BIAS, DRIFT = "auto", "norm", "bias", "drift"
COSINE, CENTRED, WITHOUT_COMPONENT, DISTANCE = "cosine", "centred", "without-component", "distance"

OF_HEAD = (COSINE, CENTRED, WITHOUT_COMPONENT, DISTANCE)
"""Those that compare rows of the output head with unused ones."""

INDICATORS = (AUTO, NORM, *OF_HEAD, BIAS, DRIFT)
