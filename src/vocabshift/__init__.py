"""Give a pretrained language model a better tokenizer and keep the model.

The public face: about fifteen names, each loaded on first touch, so that ``import vocabshift``
stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabshift.bpe.check import CheckReport, check
    from vocabshift.bpe.encoder import Encoder
    from vocabshift.bpe.load import load_tokenizer
    from vocabshift.bpe.tokenizer import Tokenizer
    from vocabshift.cpt.packed_ids import PackedIds
    from vocabshift.errors import (
        CorpusError,
        InvalidTokenizerError,
        UnreachableTokenError,
        VocabMismatchError,
    )
    from vocabshift.evaluation.evaluate import evaluate
    from vocabshift.evaluation.score import score
    from vocabshift.results import Result, Results
    from vocabshift.surgery.transfer import transfer
    from vocabshift.text.corpus import Corpus
    from vocabshift.trainers.bpe import BpeTrainer
    from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer

__version__ = "0.1.0"

_FACE = {
    "BpeTrainer": "vocabshift.trainers.bpe",
    "CheckReport": "vocabshift.bpe.check",
    "Corpus": "vocabshift.text.corpus",
    "CorpusError": "vocabshift.errors",
    "Encoder": "vocabshift.bpe.encoder",
    "InvalidTokenizerError": "vocabshift.errors",
    "PackedIds": "vocabshift.cpt.packed_ids",
    "Result": "vocabshift.results",
    "Results": "vocabshift.results",
    "SuperBpeTrainer": "vocabshift.trainers.superword",
    "SuperwordTrainer": "vocabshift.trainers.superword",
    "Tokenizer": "vocabshift.bpe.tokenizer",
    "UnreachableTokenError": "vocabshift.errors",
    "VocabMismatchError": "vocabshift.errors",
    "check": "vocabshift.bpe.check",
    "evaluate": "vocabshift.evaluation.evaluate",
    "load_tokenizer": "vocabshift.bpe.load",
    "score": "vocabshift.evaluation.score",
    "transfer": "vocabshift.surgery.transfer",
}

__all__ = [
    "BpeTrainer",
    "CheckReport",
    "Corpus",
    "CorpusError",
    "Encoder",
    "InvalidTokenizerError",
    "PackedIds",
    "Result",
    "Results",
    "SuperBpeTrainer",
    "SuperwordTrainer",
    "Tokenizer",
    "UnreachableTokenError",
    "VocabMismatchError",
    "__version__",
    "check",
    "evaluate",
    "load_tokenizer",
    "score",
    "transfer",
]


def __getattr__(name: str) -> Any:
    if name in _FACE:
        value = getattr(importlib.import_module(_FACE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'vocabshift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
