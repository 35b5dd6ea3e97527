"""Train by recipe name into a folder: what `vocabshift train` does.

Owns which recipes there are and what stands in the folder's `vocabshift.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.checks.vocabulary import unused_names, with_unused
from vocabshift.checks.vocabulary_report import vocabulary_report
from vocabshift.errors import InvalidTokenizerError, UnreachableTokenError
from vocabshift.progress import Progress
from vocabshift.storage.checkpoints import Checkpoints, Saved
from vocabshift.storage.output import CHECKPOINTS, atomic_folder, check_free
from vocabshift.storage.provenance import config_hash, write_provenance
from vocabshift.text.readers import input_key, no_key_reason
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.trainers.balanced import BalancedTrainer
from vocabshift.trainers.base import (
    RunContext,
    Source,
    config_of,
    source_key,
    source_paths,
    source_texts,
)
from vocabshift.trainers.boundless import BoundlessTrainer
from vocabshift.trainers.byte_level import BpeTrainer, ByteLevelTrainer
from vocabshift.trainers.cluster import ClusterTrainer
from vocabshift.trainers.cluster_bpe import ClusterBpeTrainer
from vocabshift.trainers.matra import MatraTrainer, variant_options
from vocabshift.trainers.on_top import SuperwordsOnTopTrainer
from vocabshift.trainers.overlap import OverlapTrainer
from vocabshift.trainers.picky import PickyTrainer
from vocabshift.trainers.special_tokens import special_contents
from vocabshift.trainers.stacked import StackedTrainer
from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer
from vocabshift.trainers.unigram import UnigramTrainer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend


# Which run of a trainer a checkpoint belongs to.
#
# Owns the key: configuration, input and version, so that a checkpoint of another run is never used.
# How phases lie on disk is the business of `vocabshift.storage.checkpoints`.


__all__ = ["Checkpoints", "Saved", "input_key", "no_key_reason", "training_key"]


def training_key(trainer: Any, source: Source, memory_bytes: int = 0) -> str | None:
    """Key of training with this trainer on this source; None where the source has none.

    The number of threads is left out: no result depends on it. One may depend on the memory
    budget, where it leaves words out.
    """
    from vocabshift import __version__

    text = source_key(source)
    if text is None:
        return None
    special = getattr(trainer, "special_tokens_from", None)
    contents = [] if special is None else sorted(special_contents(special))
    return config_hash(
        {
            "version": __version__,
            "config": config_of(trainer),
            "input": text,
            "special": contents,
            "memory": memory_bytes,
        }
    )


# ---


AnyTrainer = ByteLevelTrainer | SuperwordsOnTopTrainer | UnigramTrainer

RECIPES: Mapping[str, type[AnyTrainer]] = {
    trainer.recipe: trainer
    for trainer in (
        BpeTrainer,
        SuperBpeTrainer,
        SuperwordTrainer,
        MatraTrainer,
        BalancedTrainer,
        BoundlessTrainer,
        PickyTrainer,
        OverlapTrainer,
        StackedTrainer,
        SuperwordsOnTopTrainer,
        UnigramTrainer,
        ClusterTrainer,
        ClusterBpeTrainer,
    )
}

# Of the corpus, encoded by `tokenizers` with the written file: so many documents, and characters.
_VERIFIED_DOCUMENTS = 500
_VERIFIED_CHARACTERS = 1 << 22


def make_trainer(recipe: str, options: Mapping[str, Any]) -> AnyTrainer:
    """The trainer of a recipe; ValueError for an unknown recipe or option."""
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}; known are: {', '.join(RECIPES)}")
    kind = RECIPES[recipe]
    options = dict(options)
    if kind is MatraTrainer and (variant := options.pop("variant", None)) is not None:
        options = variant_options(variant, options)
    known = kind.__dataclass_fields__
    for name in options:
        if name not in known:
            raise ValueError(
                f"recipe {recipe} has no option {name!r}; its options are {', '.join(known)}"
            )
    for name in ("special_tokens", "high_resource"):
        if name in options:
            options[name] = tuple(options[name])
    return kind(**options)


def train_to_folder(
    recipe: str,
    source: Source,
    options: Mapping[str, Any],
    out: Path,
    *,
    threads: int = 1,
    memory_bytes: int = 0,
    force: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    reserve_dummies: int = 0,
) -> dict[str, Any]:
    """Train, write the folder, reopen it with `tokenizers` and compare; the contract's keys.

    The folder appears whole or not at all. FileExistsError where it exists, without `force`.
    What a run that was killed had finished is used, unless `resume` is off. `reserve_dummies`: so
    many special tokens are added that no text has (`bpe.unused_tokens`); for BPE only.
    """
    trainer = make_trainer(recipe, options)
    if reserve_dummies and isinstance(trainer, UnigramTrainer):
        raise ValueError(f"reserve_dummies is for BPE; recipe {recipe} makes a Unigram tokenizer")
    unused_names(reserve_dummies)  # an impossible number is told before the work of hours
    check_free(out, force=force, inputs=[*source_paths(source), *trainer.read_from])
    with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as partial:
        key = training_key(trainer, source, memory_bytes)
        context = RunContext(
            threads=threads,
            progress=progress,
            memory_bytes=memory_bytes,
            checkpoints=Checkpoints(partial / CHECKPOINTS, key),
            folder=partial,
        )
        training = trainer.run(source, context)
        tokenizer = training.tokenizer
        if tokenizer.kind == "BPE":
            tokenizer = with_unused(as_tokenizer(tokenizer), reserve_dummies)
        backend = write_files(tokenizer, partial)
        _verify_segmentation(tokenizer, backend, source)
        unreachable = tokenizer.unreachable()
        # A Unigram model may have such pieces: their parts together can be likelier than they are.
        learned = set(unreachable) - trainer.inherited
        if learned and tokenizer.kind == "BPE":
            raise UnreachableTokenError(
                f"training left {len(learned)} tokens that their merges cannot rebuild: this is a "
                "fault of vocabshift; please report it with the corpus or a part of it"
            )
        vocabulary = vocabulary_report(
            training.tokenizer, language_bytes=training.language_bytes
        ).to_dict()["rows"]
        figures = {**asdict(training.report), "vocabulary": vocabulary}
        if reserve_dummies:
            figures["dummies"] = reserve_dummies
        for key in ("phases", "config_hash", "corpus_fingerprint"):  # run by run, or elsewhere
            del figures[key]
        write_provenance(
            partial,
            "train",
            config_of(trainer),
            figures,
            corpus_fingerprint=training.report.corpus_fingerprint,
        )
    report = asdict(training.report)
    return {
        "out": str(out),
        **report,
        "unreachable": len(unreachable),
        "vocabulary": vocabulary,
    }


def _verify_segmentation(tokenizer: AnyTokenizer, backend: Backend, source: Source) -> None:
    """InvalidTokenizerError where `tokenizers`, from the file, gives other ids."""
    texts: list[str] = []
    left = _VERIFIED_CHARACTERS
    for text in islice(source_texts(source), _VERIFIED_DOCUMENTS):
        texts.append(text[:left])
        left -= len(text)
        if left <= 0:  # a document may be a whole file
            break
    ids, offsets = tokenizer.encode_batch(texts)
    for i, encoding in enumerate(backend.encode_batch(texts, add_special_tokens=False)):
        if encoding.ids != ids[offsets[i] : offsets[i + 1]].tolist():
            raise InvalidTokenizerError(
                f"the written tokenizer segments document {i + 1} of the corpus differently from "
                "training: this is a fault of vocabshift; please report it with that document"
            )
