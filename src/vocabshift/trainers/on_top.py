"""Superwords on top of an existing byte-level tokenizer: all its ids stay, superwords are appended.

This is IST's stage 2, but it starts from the merges of the base. They segment every pre-token of
the new pattern, by rank over the whole pre-token, as the exported tokenizer will do. A merge of the
base never meets a new token (stage 2 makes no token twice), so the base's merges are finished
wherever the new ones begin.

The base's boundary at spaces must be removed. That alone changes its segmentation, and kills the
tokens that only merge skipping reaches. Both are measured and reported, and the pattern that
changes least is used (`boundary_choice`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from vocabshift.errors import CorpusError
from vocabshift.progress import Progress
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.weighing import check_sampling_alpha
from vocabshift.text.writing import SentencePolicy
from vocabshift.tokenizer.corpus_reader import TokenizerReader
from vocabshift.tokenizer.model import MAX_ID
from vocabshift.tokenizer.token_bytes import is_superword
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.base import (
    RunContext,
    Source,
    Training,
    TrainingReport,
    check_positive,
    run_figures,
)
from vocabshift.trainers.boundary_choice import (
    OWN,
    OWN_SENTENCES,
    BaseTokenizer,
    BoundaryCandidate,
    BoundaryChange,
    candidates,
    choose,
    measure,
)
from vocabshift.trainers.stages import Stage, SuperwordRule
from vocabshift.trainers.superword import learn_superwords

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class OnTopReport(TrainingReport):
    """What a run did; the merges of the base count as stage 1.

    The shares, in [0, 1], are measured on a sample of the corpus. They are the changes by the new
    boundaries alone, before any superword.
    """

    base: str  # its name
    new_tokens: int
    stage2_pre_tokenizer: str  # name of the chosen pattern
    changed_lines: Mapping[str, float]  # by language: documents that are segmented differently
    changed_tokens: Mapping[str, float]  # by language: tokens of the base that are gone
    tokens_lost: tuple[str, ...]  # tokens of the base that no text yields any more
    candidates: tuple[BoundaryChange, ...]  # every pattern that was tried


def facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts shown to users: changes by the new boundaries, and by the alternatives."""
    names = (f"{c['name']} {c['changed_tokens']:.2%}" for c in result["candidates"])
    changed = (
        f"{language} {share:.1%} / {result['changed_tokens'][language]:.2%}"
        for language, share in result["changed_lines"].items()
    )
    return {
        "superwords on top of": f"{result['base']} ({result['new_tokens']:,} new tokens)",
        "pattern": result["stage2_pre_tokenizer"],
        "tokens that each pattern changes": ", ".join(names),
        "lines / tokens changed by boundaries": ", ".join(changed),
        "tokens of the base lost": len(result["tokens_lost"]),
    }


@dataclass(frozen=True, kw_only=True)
class SuperwordsOnTopTrainer:
    """Superwords on top of `base`. Give either `n_tokens` or `vocab_size`."""

    base: Annotated[Any, "TOKENIZER"]
    """A byte-level tokenizer: path, Hub name or tokenizer object."""
    n_tokens: int | None = None
    """Superwords to add."""
    vocab_size: int | None = None
    """Tokens in all: those of the base, its added tokens, and the superwords."""
    stage2_pre_tokenizer: str | Pattern = AUTO
    """"auto" takes the candidate that changes the base least; "own" and "own-sentences" are made
    from the base's pattern; else the name of a pattern, or a regex."""
    max_words: int | None = None
    """Most words, divided by spaces, that a superword may hold."""
    max_token_bytes: int | None = None
    """Longest new token, in bytes."""
    min_frequency: int = 1
    """A pair must occur this often to merge."""
    sampling_alpha: Annotated[float | None, "share"] = None
    """Temperature over the languages of the corpus, as in the other trainers."""

    recipe: ClassVar[str] = "on-top"

    def __post_init__(self) -> None:
        for name in ("n_tokens", "max_words", "max_token_bytes", "min_frequency"):
            check_positive(name, getattr(self, name))
        if (self.n_tokens is None) == (self.vocab_size is None):
            raise ValueError(
                "give either n_tokens, the superwords to add, or vocab_size, the tokens in all"
            )
        object.__setattr__(self, "base", BaseTokenizer(self.base))
        if self.vocab_size is not None and self.vocab_size <= len(self.base.vocab):
            raise ValueError(
                f"vocab_size {self.vocab_size} leaves no room for superwords: the base has "
                f"{len(self.base.vocab)} tokens; give more, or n_tokens"
            )
        room = MAX_ID + 1 - self.base.tokenizer.row_count
        if self._size - len(self.base.vocab) > room:
            raise ValueError(f"that many superwords are too many; the base has room for {room}")
        self._patterns()

    @property
    def read_from(self) -> list[Path]:
        """The other files that training reads, apart from the corpus."""
        return [] if self.base.path is None else [self.base.path]

    @property
    def inherited(self) -> set[str]:
        """Tokens that were not learned here."""
        return set(self.base.vocab)

    def train(
        self, corpus: Corpus, *, threads: int = 1, progress: Progress | None = None
    ) -> Tokenizer:
        """Train on `corpus` and return the tokenizer; it does not depend on `threads`."""
        return self.run(corpus, RunContext(threads=threads, progress=progress)).tokenizer

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        context = context or RunContext()
        if not isinstance(corpus, Corpus):
            raise CorpusError(
                "recipe on-top needs the text itself, to compare segmentations; give --corpus"
            )
        check_sampling_alpha(self.sampling_alpha, corpus.languages)
        corpus.require_text()
        with context.watch.phase("measure"):
            measured = measure(self.base, self._patterns(), corpus, context.threads)
        chosen = choose(measured) if self.stage2_pre_tokenizer == AUTO else measured[-1]
        reader = TokenizerReader.of(
            self.base.tokenizer,
            corpus,
            pattern=chosen.pattern,
            sampling_alpha=self.sampling_alpha,
        )
        learned = learn_superwords(reader, self.base.stage(), self._rule(chosen.name), context)
        return self._finish(measured, chosen, learned, reader, context)

    @property
    def _size(self) -> int:
        """Return the total number of tokens, with the superwords."""
        return self.vocab_size or len(self.base.vocab) + (self.n_tokens or 0)

    def _patterns(self) -> dict[str, Pattern]:
        """Return the patterns to measure: the candidates, then the requested pattern."""
        patterns = candidates(self.base.tokenizer)
        wanted = self.stage2_pre_tokenizer
        if wanted == AUTO:
            return patterns
        if wanted in (OWN, OWN_SENTENCES) and wanted not in patterns:
            raise ValueError(
                f"{self.base.tokenizer.name} has no pattern whose space boundary could be lifted; "
                "give ist-stage2 or another pattern"
            )
        name = wanted if isinstance(wanted, str) else "given"
        pattern = patterns.pop(name, None)
        return patterns | {name: get_pattern(wanted) if pattern is None else pattern}

    def _rule(self, pattern: str) -> SuperwordRule:
        """Return the rule of stage 2. If the pattern does not cut after every terminal ("!word"
        and ".", newline are pre-tokens of most bases), no new token holds a terminal or a newline,
        or the end of one together with the following bytes."""
        return SuperwordRule(
            vocab_size=self._size,
            min_frequency=self.min_frequency,
            max_token_bytes=self.max_token_bytes or 0,
            max_words=self.max_words or 0,
            forbidden=self.base.forbidden(),
            terminals=SentencePolicy().everywhere + "\r\n" if pattern == OWN else "",
            whole_first=pattern == OWN,
        )

    def _finish(
        self,
        measured: list[BoundaryCandidate],
        chosen: BoundaryCandidate,
        learned: Stage,
        reader: CorpusReader,
        context: RunContext,
    ) -> Training:
        """Make tokenizer and report from the measurements and the learned stage."""
        shares = {label: drift.shares for label, drift in chosen.drifts.items()}
        tokenizer = self.base.extended(chosen.pattern, learned)
        n_base = len(self.base.tokenizer.model.merges)
        report = OnTopReport(
            **run_figures(self, reader, context),
            vocab_size=tokenizer.vocab_size,
            merges=n_base + len(learned.merges),
            stage1_merges=n_base,
            stage2_merges=len(learned.merges),
            superwords=sum(map(is_superword, learned.tokens)),
            training_tokens=learned.training_tokens + reader.n_special,
            stopped_because=learned.stopped,
            dropped_words=learned.dropped_words,
            dropped_occurrences=learned.dropped_occurrences,
            dropped_below=learned.dropped_below,
            stopped_below=learned.stopped_below,
            base=self.base.tokenizer.name,
            new_tokens=len(learned.tokens) - len(self.base.vocab),
            stage2_pre_tokenizer=chosen.name,
            changed_lines={label: lines for label, (lines, _) in shares.items()},
            changed_tokens={label: tokens for label, (_, tokens) in shares.items()},
            tokens_lost=chosen.tokens_lost,
            candidates=tuple(one.summary() for one in measured),
        )
        return Training(tokenizer, report, reader.language_bytes)
