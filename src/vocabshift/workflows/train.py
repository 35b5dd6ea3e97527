"""Train by recipe name into a folder: what `vocabshift train` does.

Owns the contents of the folder's `vocabshift.json`, and the key by which a run recognises its own
checkpoints: configuration, input and version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.checks.vocabulary import unused_names, with_unused
from vocabshift.checks.vocabulary_report import VocabularyReport, vocabulary_report
from vocabshift.errors import InvalidTokenizerError, UnreachableTokenError
from vocabshift.progress import Progress
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.storage.outcome import config_hash, outcome
from vocabshift.storage.output import CHECKPOINTS
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.llama_cpp import DEPLOYABLE
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.trainers.base import (
    RunContext,
    Source,
    config_of,
    source_key,
    source_texts,
)
from vocabshift.trainers.byte_level import ByteLevelTrainer
from vocabshift.trainers.recipes import (
    RECIPES,
    TAKE_RUNS,
    VARIANT,
    AnyTrainer,
    Recipe,
    make_trainer,
    require_takes_runs,
)
from vocabshift.trainers.special_tokens import special_contents
from vocabshift.trainers.unigram import UnigramTrainer

if TYPE_CHECKING:
    from rich.table import Table
    from tokenizers import Tokenizer as Backend

__all__ = [
    "RECIPES",
    "TAKE_RUNS",
    "VARIANT",
    "Recipe",
    "table_of",
    "train_to_folder",
    "training_key",
]

# The part of the corpus that is encoded with the written file: number of documents and characters.
_VERIFIED_DOCUMENTS = 500
_VERIFIED_CHARACTERS = 1 << 22


def training_key(trainer: AnyTrainer, source: Source, memory_bytes: int = 0) -> str | None:
    """The key of training with this trainer on this source; None if any of its text has none.

    It leaves out the number of threads, because no result depends on it. It includes the memory
    budget, because that may drop words.
    """
    from vocabshift import __version__

    parallel = getattr(trainer, "parallel_text", None)
    text, *other = (source_key(each) for each in (source, parallel) if each is not None)
    if text is None or None in other:
        return None
    special = getattr(trainer, "special_tokens_from", None)
    contents = [] if special is None else sorted(special_contents(special))
    return config_hash(
        {
            "version": __version__,
            "config": config_of(trainer),
            "input": text,
            **({"parallel": other[0]} if other else {}),
            "special": contents,
            "memory": memory_bytes,
        }
    )


def train_to_folder(
    recipe: str,
    source: Source,
    options: Mapping[str, Any],
    out: str | Path,
    *,
    threads: int = 1,
    memory_bytes: int = 0,
    force: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    reserve_dummies: int = 0,
) -> dict[str, Any]:
    """Train by a recipe, write the folder, reopen it with `tokenizers` and compare.

    recipe: a name in `RECIPES`; options: of its trainer, by their names, only those that differ
        from their defaults.
    source: a Corpus; or a CountFolder if the recipe reads words alone, or has runs beside them.
    out: the folder, which appears whole or not at all.
    threads: of counting and encoding; the result does not depend on it.
    memory_bytes: budget for counted text; 0: no limit. It may drop rare words.
    force: replace an existing `out`. resume: reuse the finished work of a run that was killed.
    progress: called with the phase, the work done and the total work.
    reserve_dummies: add this many special tokens that occur in no text
        (`checks.vocabulary.with_unused`); for BPE only.

    Returns the keys of `vocabshift train --json`. ValueError for an unknown recipe or option,
    FileExistsError if `out` exists, CorpusError if there is no text.
    """
    trainer = make_trainer(recipe, options)
    if isinstance(source, CountFolder) and source.runs is not None:
        require_takes_runs(recipe)
    choice = None
    if isinstance(trainer, ByteLevelTrainer) and trainer.pre_tokenizer == DEPLOYABLE:
        from vocabshift.checks.deployable import choose, require_text

        choice = choose(require_text(source), normalizer=trainer.normalizer, threads=threads)
        trainer = replace(trainer, pre_tokenizer=choice.llama_cpp.pattern)
    if reserve_dummies and isinstance(trainer, UnigramTrainer):
        raise ValueError(f"reserve_dummies is for BPE; recipe {recipe} makes a Unigram tokenizer")
    unused_names(reserve_dummies)  # refuses an impossible number before hours of work
    inputs = [source, *trainer.read_from]
    with outcome(
        "train", out, inputs=inputs, force=force, keep_checkpoints=True, resume=resume
    ) as output:
        key = training_key(trainer, source, memory_bytes)
        context = RunContext(
            threads=threads,
            progress=progress,
            memory_bytes=memory_bytes,
            checkpoints=Checkpoints(output.folder / CHECKPOINTS, key),
            folder=output.folder,
        )
        training = trainer.run(source, context)
        tokenizer = training.tokenizer
        if tokenizer.kind == "BPE":
            tokenizer = with_unused(as_tokenizer(tokenizer), reserve_dummies)
        backend = write_files(tokenizer, output.folder)
        _verify_segmentation(tokenizer, backend, source)
        unreachable = tokenizer.unreachable()
        # A Unigram model may have such tokens: their parts together can be likelier than they are.
        learned = set(unreachable) - trainer.inherited
        if learned and tokenizer.kind == "BPE":
            raise UnreachableTokenError(
                f"training left {len(learned)} tokens that their merges cannot rebuild: this is a "
                "fault of vocabshift; please report it with the corpus or a part of it"
            )
        vocabulary = vocabulary_report(
            training.tokenizer, language_bytes=training.language_bytes
        ).to_dict()["rows"]
        report = asdict(training.report)
        elsewhere = ("phases", "config_hash", "corpus_fingerprint")  # vary by run, or reported
        figures = {key: value for key, value in report.items() if key not in elsewhere}
        figures["vocabulary"] = vocabulary
        deployable = {} if choice is None else {"deployable": choice.to_dict()}
        figures |= deployable
        if reserve_dummies:
            figures["dummies"] = reserve_dummies
        output.record(
            config_of(trainer), figures, corpus_fingerprint=training.report.corpus_fingerprint
        )
    return {
        "out": str(out),
        **report,
        "unreachable": len(unreachable),
        "vocabulary": vocabulary,
        **deployable,
    }


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The key `vocabulary` of a result as a table for people."""
    from vocabshift.report.tables import vocabulary_table

    return vocabulary_table(VocabularyReport.from_rows(rows))


def _verify_segmentation(tokenizer: AnyTokenizer, backend: Backend, source: Source) -> None:
    """InvalidTokenizerError if `tokenizers` produces other ids from the file."""
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
