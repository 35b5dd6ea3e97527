"""Give a pretrained language model a better tokenizer and keep the model.

The public face: about fifteen names, each loaded on first touch, so that ``import vocabshift``
stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_FACE = {
    "CorpusError": "vocabshift.errors",
    "InvalidTokenizerError": "vocabshift.errors",
    "UnreachableTokenError": "vocabshift.errors",
    "VocabMismatchError": "vocabshift.errors",
}

__all__ = ["__version__", *sorted(_FACE)]


def __getattr__(name: str) -> Any:
    if name in _FACE:
        value = getattr(importlib.import_module(_FACE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'vocabshift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
