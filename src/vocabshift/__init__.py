"""Give a pretrained language model a better tokenizer and keep the model.

The public face: some forty names, each loaded on first touch, so that ``import vocabshift`` stays
light.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the table below in the words of type checkers; a test holds the two equal
    from vocabshift.checks.check import CheckReport as CheckReport
    from vocabshift.checks.check import check as check
    from vocabshift.checks.runtime_reports import RuntimeReport as RuntimeReport
    from vocabshift.checks.runtime_reports import check_runtimes as check_runtimes
    from vocabshift.cpt.config import LoopConfig as LoopConfig
    from vocabshift.cpt.config import Phase as Phase
    from vocabshift.cpt.held_rows import hold_old_rows as hold_old_rows
    from vocabshift.cpt.in_trainer import LeanLoss as LeanLoss
    from vocabshift.cpt.in_trainer import LikelihoodMatching as LikelihoodMatching
    from vocabshift.cpt.loop import pretrain as pretrain
    from vocabshift.cpt.pack_corpus import PackOptions as PackOptions
    from vocabshift.cpt.pack_corpus import pack_corpus as pack_corpus
    from vocabshift.cpt.packed_dataset import packed_dataset as packed_dataset
    from vocabshift.cpt.packed_ids import PackedIds as PackedIds
    from vocabshift.cpt.run_config import CptConfig as CptConfig
    from vocabshift.cpt.steps import Step as Step
    from vocabshift.cpt.teacher_folder import StoredTeacher as StoredTeacher
    from vocabshift.errors import CorpusError as CorpusError
    from vocabshift.errors import InvalidTokenizerError as InvalidTokenizerError
    from vocabshift.errors import UnreachableTokenError as UnreachableTokenError
    from vocabshift.errors import VocabMismatchError as VocabMismatchError
    from vocabshift.evaluation.compare import compare as compare
    from vocabshift.evaluation.evaluate import evaluate as evaluate
    from vocabshift.evaluation.glitch.find import find_glitch_tokens as find_glitch_tokens
    from vocabshift.evaluation.harness.run import run_harness as run_harness
    from vocabshift.evaluation.metrics.registry import METRICS as METRICS
    from vocabshift.evaluation.scoring.score import score as score
    from vocabshift.evaluation.scoring.score_models import score_models as score_models
    from vocabshift.extension.named_tokens import NamedTokens as NamedTokens
    from vocabshift.extension.options import ExtensionOptions as ExtensionOptions
    from vocabshift.models.gguf import convert_gguf as convert_gguf
    from vocabshift.models.gguf_trim import transfer_gguf as transfer_gguf
    from vocabshift.models.gguf_write import convert_to_gguf as convert_to_gguf
    from vocabshift.playground.app import open_playground as open_playground
    from vocabshift.results import Result as Result
    from vocabshift.results import Results as Results
    from vocabshift.results import read_results as read_results
    from vocabshift.surgery.apply_pack import apply_language_pack as apply_language_pack
    from vocabshift.surgery.apply_pack import read_language_pack as read_language_pack
    from vocabshift.surgery.language_pack import make_language_pack as make_language_pack
    from vocabshift.surgery.options import DistillOptions as DistillOptions
    from vocabshift.surgery.options import TransferOptions as TransferOptions
    from vocabshift.text.corpus import Corpus as Corpus
    from vocabshift.text.count_folder import CountFolder as CountFolder
    from vocabshift.tokenizer.formats.encoder import Encoder as Encoder
    from vocabshift.tokenizer.formats.hf_tokenizer import hf_tokenizer as hf_tokenizer
    from vocabshift.tokenizer.formats.load import load_tokenizer as load_tokenizer
    from vocabshift.tokenizer.tokenizer import Tokenizer as Tokenizer
    from vocabshift.trainers.balanced import BalancedTrainer as BalancedTrainer
    from vocabshift.trainers.boundless import BoundlessTrainer as BoundlessTrainer
    from vocabshift.trainers.byte_level import BpeTrainer as BpeTrainer
    from vocabshift.trainers.cluster import ClusterTrainer as ClusterTrainer
    from vocabshift.trainers.cluster_bpe import ClusterBpeTrainer as ClusterBpeTrainer
    from vocabshift.trainers.matra import MatraTrainer as MatraTrainer
    from vocabshift.trainers.on_top import SuperwordsOnTopTrainer as SuperwordsOnTopTrainer
    from vocabshift.trainers.overlap import OverlapTrainer as OverlapTrainer
    from vocabshift.trainers.picky import PickyTrainer as PickyTrainer
    from vocabshift.trainers.stacked import StackedTrainer as StackedTrainer
    from vocabshift.trainers.superword import SuperBpeTrainer as SuperBpeTrainer
    from vocabshift.trainers.superword import SuperwordTrainer as SuperwordTrainer
    from vocabshift.trainers.unigram import UnigramTrainer as UnigramTrainer
    from vocabshift.workflows.adapt_model import adapt_model as adapt_model
    from vocabshift.workflows.adapt_tokenizer import adapt_tokenizer as adapt_tokenizer
    from vocabshift.workflows.adapters import merge_adapter as merge_adapter
    from vocabshift.workflows.adapters import transfer_adapter as transfer_adapter
    from vocabshift.workflows.continue_pretraining import (
        continue_pretraining as continue_pretraining,
    )
    from vocabshift.workflows.decide import decide as decide
    from vocabshift.workflows.decide_options import DecideOptions as DecideOptions
    from vocabshift.workflows.extend import extend as extend
    from vocabshift.workflows.measure_models import measure_latency as measure_latency
    from vocabshift.workflows.plan import plan as plan
    from vocabshift.workflows.prune import prune as prune
    from vocabshift.workflows.teach import matched_dataset as matched_dataset
    from vocabshift.workflows.transfer import transfer as transfer

__version__ = "0.1.0"

_MODULES: dict[str, tuple[str, ...]] = {
    "vocabshift.checks.check": (
        "CheckReport",
        "check",
    ),
    "vocabshift.checks.runtime_reports": (
        "RuntimeReport",
        "check_runtimes",
    ),
    "vocabshift.cpt.config": (
        "LoopConfig",
        "Phase",
    ),
    "vocabshift.cpt.held_rows": ("hold_old_rows",),
    "vocabshift.cpt.in_trainer": (
        "LeanLoss",
        "LikelihoodMatching",
    ),
    "vocabshift.cpt.loop": ("pretrain",),
    "vocabshift.cpt.pack_corpus": (
        "PackOptions",
        "pack_corpus",
    ),
    "vocabshift.cpt.packed_dataset": ("packed_dataset",),
    "vocabshift.cpt.packed_ids": ("PackedIds",),
    "vocabshift.cpt.run_config": ("CptConfig",),
    "vocabshift.cpt.steps": ("Step",),
    "vocabshift.cpt.teacher_folder": ("StoredTeacher",),
    "vocabshift.errors": (
        "CorpusError",
        "InvalidTokenizerError",
        "UnreachableTokenError",
        "VocabMismatchError",
    ),
    "vocabshift.evaluation.compare": ("compare",),
    "vocabshift.evaluation.evaluate": ("evaluate",),
    "vocabshift.evaluation.glitch.find": ("find_glitch_tokens",),
    "vocabshift.evaluation.harness.run": ("run_harness",),
    "vocabshift.evaluation.metrics.registry": ("METRICS",),
    "vocabshift.evaluation.scoring.score": ("score",),
    "vocabshift.evaluation.scoring.score_models": ("score_models",),
    "vocabshift.extension.named_tokens": ("NamedTokens",),
    "vocabshift.extension.options": ("ExtensionOptions",),
    "vocabshift.models.gguf": ("convert_gguf",),
    "vocabshift.models.gguf_trim": ("transfer_gguf",),
    "vocabshift.models.gguf_write": ("convert_to_gguf",),
    "vocabshift.playground.app": ("open_playground",),
    "vocabshift.results": (
        "Result",
        "Results",
        "read_results",
    ),
    "vocabshift.surgery.apply_pack": ("apply_language_pack", "read_language_pack"),
    "vocabshift.surgery.language_pack": ("make_language_pack",),
    "vocabshift.surgery.options": ("DistillOptions", "TransferOptions"),
    "vocabshift.text.corpus": ("Corpus",),
    "vocabshift.text.count_folder": ("CountFolder",),
    "vocabshift.tokenizer.formats.encoder": ("Encoder",),
    "vocabshift.tokenizer.formats.hf_tokenizer": ("hf_tokenizer",),
    "vocabshift.tokenizer.formats.load": ("load_tokenizer",),
    "vocabshift.tokenizer.tokenizer": ("Tokenizer",),
    "vocabshift.trainers.balanced": ("BalancedTrainer",),
    "vocabshift.trainers.boundless": ("BoundlessTrainer",),
    "vocabshift.trainers.byte_level": ("BpeTrainer",),
    "vocabshift.trainers.cluster": ("ClusterTrainer",),
    "vocabshift.trainers.cluster_bpe": ("ClusterBpeTrainer",),
    "vocabshift.trainers.matra": ("MatraTrainer",),
    "vocabshift.trainers.on_top": ("SuperwordsOnTopTrainer",),
    "vocabshift.trainers.overlap": ("OverlapTrainer",),
    "vocabshift.trainers.picky": ("PickyTrainer",),
    "vocabshift.trainers.stacked": ("StackedTrainer",),
    "vocabshift.trainers.superword": (
        "SuperBpeTrainer",
        "SuperwordTrainer",
    ),
    "vocabshift.trainers.unigram": ("UnigramTrainer",),
    "vocabshift.workflows.adapt_model": ("adapt_model",),
    "vocabshift.workflows.adapt_tokenizer": ("adapt_tokenizer",),
    "vocabshift.workflows.adapters": (
        "merge_adapter",
        "transfer_adapter",
    ),
    "vocabshift.workflows.continue_pretraining": ("continue_pretraining",),
    "vocabshift.workflows.decide": ("decide",),
    "vocabshift.workflows.decide_options": ("DecideOptions",),
    "vocabshift.workflows.extend": ("extend",),
    "vocabshift.workflows.measure_models": ("measure_latency",),
    "vocabshift.workflows.plan": ("plan",),
    "vocabshift.workflows.prune": ("prune",),
    "vocabshift.workflows.teach": ("matched_dataset",),
    "vocabshift.workflows.transfer": ("transfer",),
}
"""Every public name, by the module that it is loaded from."""

_FACE = dict(sorted((name, module) for module, names in _MODULES.items() for name in names))

_RENAMED: dict[str, tuple[str, str]] = {}
"""Deprecated names: what to write instead, and the version with which they go."""

__all__ = ["__version__"]
__all__ += list(_FACE)


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new, gone = _RENAMED[name]
        deprecation = importlib.import_module("vocabshift.errors").deprecation
        message = deprecation(f"vocabshift.{name}", f"vocabshift.{new}", gone)
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        name = new
    if name in _FACE:
        value = getattr(importlib.import_module(_FACE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'vocabshift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
