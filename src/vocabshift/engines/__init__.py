"""The counting and encoding core, to run inside the engines that hold a corpus: Spark, Ray, others.

The callables take an iterator of Arrow record batches and return one. They can be pickled, and
know nothing of any engine.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "Borders": "vocabshift.engines.borders",
    "CountPieces": "vocabshift.engines.words",
    "CountRuns": "vocabshift.engines.runs",
    "EncodeTexts": "vocabshift.engines.encode",
    "RowOptions": "vocabshift.engines.rows",
    "RunPlan": "vocabshift.engines.borders",
    "RunSums": "vocabshift.engines.runs",
    "SketchBorders": "vocabshift.engines.borders",
    "SparkOptions": "vocabshift.engines.spark",
    "count_words": "vocabshift.engines.spark",
    "write_words": "vocabshift.engines.spark",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
