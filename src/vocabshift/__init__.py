"""Give a pretrained language model a better tokenizer and keep the model.

The public face: about two dozen names, each loaded on first touch, so that ``import vocabshift``
stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabshift.checks.check import CheckReport, check
    from vocabshift.cpt.config import LoopConfig, Phase
    from vocabshift.cpt.loop import pretrain
    from vocabshift.cpt.pack_corpus import pack_corpus
    from vocabshift.cpt.packed_ids import PackedIds
    from vocabshift.cpt.packer import PackOptions
    from vocabshift.cpt.run_config import CptConfig
    from vocabshift.cpt.steps import Step
    from vocabshift.errors import (
        CorpusError,
        InvalidTokenizerError,
        UnreachableTokenError,
        VocabMismatchError,
    )
    from vocabshift.evaluation.evaluate import evaluate
    from vocabshift.evaluation.scoring.score import score
    from vocabshift.extension.options import ExtensionOptions
    from vocabshift.pruning.prune import prune
    from vocabshift.results import Result, Results
    from vocabshift.surgery.options import TransferOptions
    from vocabshift.text.corpus import Corpus
    from vocabshift.text.count_folder import CountFolder
    from vocabshift.tokenizer.encoder import Encoder
    from vocabshift.tokenizer.formats.load import load_tokenizer
    from vocabshift.tokenizer.tokenizer import Tokenizer
    from vocabshift.trainers.balanced import BalancedTrainer
    from vocabshift.trainers.boundless import BoundlessTrainer
    from vocabshift.trainers.byte_level import BpeTrainer
    from vocabshift.trainers.cluster import ClusterTrainer
    from vocabshift.trainers.cluster_bpe import ClusterBpeTrainer
    from vocabshift.trainers.matra import MatraTrainer
    from vocabshift.trainers.on_top import SuperwordsOnTopTrainer
    from vocabshift.trainers.overlap import OverlapTrainer
    from vocabshift.trainers.picky import PickyTrainer
    from vocabshift.trainers.stacked import StackedTrainer
    from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer
    from vocabshift.trainers.unigram import UnigramTrainer
    from vocabshift.workflows.adapt_model import adapt_model
    from vocabshift.workflows.adapt_tokenizer import adapt_tokenizer
    from vocabshift.workflows.continue_pretraining import continue_pretraining
    from vocabshift.workflows.extend import extend
    from vocabshift.workflows.plan import plan
    from vocabshift.workflows.transfer import transfer

__version__ = "0.1.0"

_FACE = {
    "BalancedTrainer": "vocabshift.trainers.balanced",
    "BoundlessTrainer": "vocabshift.trainers.boundless",
    "BpeTrainer": "vocabshift.trainers.byte_level",
    "CheckReport": "vocabshift.checks.check",
    "ClusterBpeTrainer": "vocabshift.trainers.cluster_bpe",
    "ClusterTrainer": "vocabshift.trainers.cluster",
    "Corpus": "vocabshift.text.corpus",
    "CorpusError": "vocabshift.errors",
    "CountFolder": "vocabshift.text.count_folder",
    "CptConfig": "vocabshift.cpt.run_config",
    "Encoder": "vocabshift.tokenizer.encoder",
    "ExtensionOptions": "vocabshift.extension.options",
    "InvalidTokenizerError": "vocabshift.errors",
    "LoopConfig": "vocabshift.cpt.config",
    "MatraTrainer": "vocabshift.trainers.matra",
    "OverlapTrainer": "vocabshift.trainers.overlap",
    "PackOptions": "vocabshift.cpt.packer",
    "PackedIds": "vocabshift.cpt.packed_ids",
    "Phase": "vocabshift.cpt.config",
    "PickyTrainer": "vocabshift.trainers.picky",
    "Result": "vocabshift.results",
    "Results": "vocabshift.results",
    "StackedTrainer": "vocabshift.trainers.stacked",
    "Step": "vocabshift.cpt.steps",
    "SuperBpeTrainer": "vocabshift.trainers.superword",
    "SuperwordTrainer": "vocabshift.trainers.superword",
    "SuperwordsOnTopTrainer": "vocabshift.trainers.on_top",
    "Tokenizer": "vocabshift.tokenizer.tokenizer",
    "TransferOptions": "vocabshift.surgery.options",
    "UnigramTrainer": "vocabshift.trainers.unigram",
    "UnreachableTokenError": "vocabshift.errors",
    "VocabMismatchError": "vocabshift.errors",
    "adapt_model": "vocabshift.workflows.adapt_model",
    "adapt_tokenizer": "vocabshift.workflows.adapt_tokenizer",
    "check": "vocabshift.checks.check",
    "continue_pretraining": "vocabshift.workflows.continue_pretraining",
    "evaluate": "vocabshift.evaluation.evaluate",
    "extend": "vocabshift.workflows.extend",
    "load_tokenizer": "vocabshift.tokenizer.formats.load",
    "pack_corpus": "vocabshift.cpt.pack_corpus",
    "plan": "vocabshift.workflows.plan",
    "pretrain": "vocabshift.cpt.loop",
    "prune": "vocabshift.pruning.prune",
    "score": "vocabshift.evaluation.scoring.score",
    "transfer": "vocabshift.workflows.transfer",
}

__all__ = [
    "BalancedTrainer",
    "BoundlessTrainer",
    "BpeTrainer",
    "CheckReport",
    "ClusterBpeTrainer",
    "ClusterTrainer",
    "Corpus",
    "CorpusError",
    "CountFolder",
    "CptConfig",
    "Encoder",
    "ExtensionOptions",
    "InvalidTokenizerError",
    "LoopConfig",
    "MatraTrainer",
    "OverlapTrainer",
    "PackOptions",
    "PackedIds",
    "Phase",
    "PickyTrainer",
    "Result",
    "Results",
    "StackedTrainer",
    "Step",
    "SuperBpeTrainer",
    "SuperwordTrainer",
    "SuperwordsOnTopTrainer",
    "Tokenizer",
    "TransferOptions",
    "UnigramTrainer",
    "UnreachableTokenError",
    "VocabMismatchError",
    "__version__",
    "adapt_model",
    "adapt_tokenizer",
    "check",
    "continue_pretraining",
    "evaluate",
    "extend",
    "load_tokenizer",
    "pack_corpus",
    "plan",
    "pretrain",
    "prune",
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
