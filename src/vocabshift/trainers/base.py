"""Shared parts of all trainers: the report, the context of a run, and the training sources.

A trainer is a frozen dataclass. Its fields are its configuration and its repr; their hash is its
key.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress, Progress, in_phase, peak_rss_bytes
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.storage.outcome import config_hash
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.counting import CorpusReader, CountReader
from vocabshift.text.patterns import Pattern
from vocabshift.text.readers import input_key
from vocabshift.text.run_folder import FILE as RUNS
from vocabshift.tokenizer.model import MAX_ID
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

Report = TypeVar("Report", bound="TrainingReport")


@dataclass(frozen=True, slots=True)
class Phase:
    """One timed part of a training run."""

    name: str
    seconds: float
    peak_rss_bytes: int  # peak of the process, up to the end of the phase


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """What a training run did; counts are integers."""

    recipe: str
    vocab_size: int  # tokens of the model, special tokens not counted
    merges: int = 0
    stage1_merges: int = 0
    stage2_merges: int = 0
    superwords: int = 0  # tokens that hold text on both sides of a space
    training_tokens: int  # of all documents, unweighted, as the saved tokenizer encodes them
    training_bytes: int
    training_documents: int
    stopped_because: str  # "vocab_size", "min_frequency", "no_pair_left", "no_piece_left", "memory"
    corpus_fingerprint: str
    config_hash: str
    dropped_words: int = 0  # distinct words that a memory budget left out of stage 1; 0: exact
    dropped_occurrences: int = 0  # how often they occur in the text
    dropped_below: int = 0  # weighted: all words that count less than this were dropped
    stopped_below: int = (
        0  # weighted: where memory ended stage 2, pairs that count less are missing
    )
    phases: tuple[Phase, ...]


def detailed(report: TrainingReport, kind: type[Report], **details: Any) -> Report:
    """Return `report` as the longer report of a recipe, with its additional fields."""
    return kind(**{each.name: getattr(report, each.name) for each in fields(report)}, **details)


@dataclass(frozen=True, slots=True)
class Training:
    """A trained tokenizer and how it came about."""

    tokenizer: Tokenizer
    report: TrainingReport
    language_bytes: Mapping[str | None, int] = field(default_factory=dict)
    """Bytes of training text by label of the corpus."""


@dataclass(frozen=True, slots=True)
class PlainTraining:
    """The same for a tokenizer whose tokens are made of no others."""

    tokenizer: UnigramOrWordPieceTokenizer
    report: TrainingReport
    language_bytes: Mapping[str | None, int] = field(default_factory=dict)


def config_of(trainer: Any) -> dict[str, Any]:
    """Return the configuration of a trainer as plain JSON values, with its recipe."""
    config = json.loads(json.dumps(asdict(trainer), default=str))
    return {"recipe": trainer.recipe, **config}


@dataclass
class Stopwatch:
    """Times phases; peak memory is the process's high-water mark."""

    phases: list[Phase] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block as one phase."""
        start = time.perf_counter()
        yield
        self.phases.append(Phase(name, round(time.perf_counter() - start, 3), peak_rss_bytes()))


def check_vocab_size(vocab_size: int, *, n_fixed: int = 256, name: str = "vocab_size") -> None:
    """Raise ValueError if a vocabulary is smaller than its alphabet, or larger than allowed.

    `n_fixed` counts the tokens that it always holds: bytes and perhaps the unknown token.
    """
    if not isinstance(vocab_size, int) or isinstance(vocab_size, bool):
        raise TypeError(f"{name} is {vocab_size!r}; give a whole number")
    if vocab_size < n_fixed:
        unknown = " and the unknown token" if n_fixed > 256 else ""
        raise ValueError(
            f"{name} {vocab_size} is below the alphabet: a vocabulary holds all 256 bytes{unknown}"
            f", so that no text is ever lost; give at least {n_fixed}"
        )
    if vocab_size > MAX_ID + 1:
        raise ValueError(f"{name} {vocab_size} is too large; give at most {MAX_ID + 1}")


def check_positive(name: str, value: int | None) -> None:
    """Raise ValueError unless `value` is None or a positive integer that the core accepts."""
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} is {value!r}; give a whole number of at least 1, or leave it out")
    if value is not None and value >= 1 << 62:
        raise ValueError(f"{name} is {value}, which is too large; leave it out for no limit")


MIN_MEMORY = 64_000_000
"""Smallest memory budget, in bytes."""


@dataclass
class RunContext:
    """How one run is carried out: threads, memory, progress, checkpoints, the clock.

    None of it changes what is learned; where a memory budget does, the report says so.
    """

    threads: int = 1
    progress: Progress | None = None
    memory_bytes: int = 0
    """What training may take, roughly; 0: as much as it likes."""
    checkpoints: Checkpoints = field(default_factory=lambda: Checkpoints(None, None))
    folder: Path | None = None
    """Where there is room for temporary files; None: the system's place for them."""
    watch: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}; give at least 1")
        if 0 < self.memory_bytes < MIN_MEMORY:
            raise ValueError(
                f"a memory budget of {self.memory_bytes:,} bytes is too small to work in; give at "
                f"least {MIN_MEMORY:,} (--memory 64MB)"
            )

    def in_phase(self, phase: str) -> PhaseProgress | None:
        """Return `progress` with its first argument filled in."""
        return in_phase(self.progress, phase)

    def report(self, phase: str, done: int, total: int) -> None:
        """Report progress if there is a callback."""
        if self.progress is not None:
            self.progress(phase, done, total)

    def refuse_budget(self, recipe: str) -> None:
        """Raise ValueError for a memory budget, because all words are in memory at once."""
        if self.memory_bytes:
            raise ValueError(
                f"recipe {recipe} holds all words in memory and knows no budget; leave --memory "
                "out, or use another recipe"
            )

    def share_of_memory(self, share: float) -> int:
        """Return the part of the budget for one structure, in bytes; 0 if there is no budget."""
        return int(self.memory_bytes * share)


# Training sources: a corpus, or a folder of counts that replaces one.

Source = Corpus | CountFolder
Reader = CorpusReader | CountReader


def make_reader(
    source: Source,
    pattern: Pattern,
    words: Pattern,
    *,
    normalizer: str | None,
    special_tokens: tuple[str, ...],
    sampling_alpha: float | None,
) -> Reader:
    """Return a reader that cuts the source by `pattern`, and its pre-tokens by `words`.

    Raises CorpusError for a folder of counts that was counted neither under `pattern` nor under
    both, one after the other.
    """
    if isinstance(source, Corpus):
        return CorpusReader(source, (*pattern, *words), normalizer, special_tokens, sampling_alpha)
    normalizer = None if normalizer == "none" else normalizer
    whole = (*pattern, *words)
    if words and source.pattern == whole:  # cut already
        pattern, words = whole, ()
    source.require(pattern, normalizer, special_tokens)
    return CountReader(source, words, sampling_alpha)


def run_figures(trainer: Any, reader: Reader, context: RunContext) -> dict[str, Any]:
    """Return the report fields of every run: those of the recipe, the text and the phases."""
    return {
        "recipe": trainer.recipe,
        "training_bytes": reader.n_bytes,
        "training_documents": reader.n_documents,
        "corpus_fingerprint": reader.fingerprint,
        "config_hash": config_hash(config_of(trainer)),
        "phases": tuple(context.watch.phases),
    }


def source_key(source: Source) -> str | None:
    """Return the key by which a later run recognises the source, or None (see `input_key`)."""
    if isinstance(source, Corpus):
        return input_key(source)
    shards = [source.path / group.shard for group in source.groups]
    if source.runs is not None:
        runs = source.runs
        shards += [runs.path / RUNS, *(runs.path / group.shard for group in runs.groups)]
    state = [(shard.stat().st_size, shard.stat().st_mtime_ns) for shard in shards]
    paths = [path.resolve() for path in source.paths]
    text = f"{paths} {source.fingerprint} {state}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def source_texts(source: Source) -> Iterator[str]:
    """Yield the documents, or the counted words if there are no documents."""
    if isinstance(source, Corpus):
        yield from (text for _, text in source.texts())
        return
    for group in range(len(source.groups)):
        for data, ends, _ in source.read(group):
            begin = 0
            for end in ends.tolist():
                yield data[begin:end].decode()
                begin = end


def labelled(language_bytes: Mapping[str | None, int], recipe: str) -> dict[str, int]:
    """Return bytes by language; CorpusError if some text has no label, or all has the same."""
    languages = {label: size for label, size in language_bytes.items() if label is not None}
    if len(languages) < len(language_bytes):
        raise CorpusError(
            f"{recipe} compares languages, and some of the text has no label; label all of it as "
            "lang=PATH"
        )
    if len(languages) < 2:
        raise CorpusError(
            f"{recipe} compares languages, and the corpus has only {', '.join(languages) or 'none'}"
            "; give at least two, labelled as lang=PATH"
        )
    return languages
