"""Parity-aware BPE: every merge serves the language that needs most tokens for its text.

Each step names a language and merges the pair that is most frequent in its training text, in all
languages. Named is the language of the lowest compression rate:

- On parallel text (`parallel`), which says the same in every language, that is the one with most
  tokens. This is the paper's setting.
- Without it the rate is that of the training text, in Unicode characters per token. Translations
  have about as many characters in all languages, so this needs no further text. The paper's authors
  call such targets ratios; theirs are given, ours are the bytes per character of each language.

The hybrid variant begins with `global_merges` merges of plain BPE. In the moving-window variant a
language that had more than `window_alpha` / n of the last `window_size` merges is passed over (n
languages). Languages without a pair left are passed over too. docs/algorithms/parity-aware.md has
the differences from the authors' program and from `tokenizers`.

With a `transition` below 1, superwords follow as in recipe ist. In that stage each language counts
as if its text had as many tokens as any other's; without this the largest would take most of it.

Source: Foroutan, Meister, Paul, Niklaus, Ahmadi, Bosselut, Sennrich, "Parity-Aware Byte-Pair
Encoding: Improving Cross-lingual Fairness in Tokenization", arXiv 2508.04796.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import get_pattern
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import (
    Reader,
    RunContext,
    Source,
    Training,
    TrainingReport,
    check_positive,
    detailed,
    labelled,
)
from vocabshift.trainers.stages import Stage, WordRule, WordWeight, learn_words
from vocabshift.trainers.superword import SuperwordTrainer


@dataclass(frozen=True, slots=True)
class ParityReport(TrainingReport):
    """What a run did."""

    measured_on: str  # "parallel text", or "training text": per character
    language_merges: Mapping[str, int]  # of stage 1: merges that served the language
    language_tokens: Mapping[str, int]  # of its training text after stage 1
    measured_tokens: Mapping[str, int]  # of the measured text after stage 1


def facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts shown to users: whom the merges served, and what that reached."""
    tokens = result["measured_tokens"].values()
    merges = sorted(result["language_merges"].items(), key=lambda item: -item[1])
    spread = (
        {}
        if result["measured_on"] != "parallel text"
        else {"most / fewest tokens of parallel text": f"{max(tokens):,} / {min(tokens):,}"}
    )
    return {
        "compression measured on": result["measured_on"],
        "merges that served": ", ".join(f"{language} {count:,}" for language, count in merges),
        **spread,
    }


def _require_words(counter: _core.WordCounter, reader: Reader, what: str) -> None:
    """CorpusError for a language whose compression cannot be measured on `what`: it has no word."""
    found = {
        group.language
        for number, group in enumerate(reader.groups)
        if number < counter.group_count and counter.size(number)
    }
    silent = [str(label) for label in reader.language_bytes if label not in found]
    if silent:
        raise CorpusError(
            f"{what} in {', '.join(silent)} holds no word, only special tokens: parity measures "
            "tokens of words; give text with words, or leave the language out"
        )


@dataclass(frozen=True, kw_only=True)
class ParityTrainer(SuperwordTrainer):
    """Parity-aware BPE: every merge serves the language that needs most tokens for its text."""

    transition: Annotated[float, "share"] = 1.0
    """Share of the vocabulary that stage 1 learns, in (0, 1]; 1: there is no stage 2."""
    parallel: Annotated[tuple[str, ...], "LANG=TEXT"] = ()
    """Text that says the same in every language of the corpus, line by line: languages with most
    tokens for it are served. Empty: those with most tokens per character of the corpus."""
    global_merges: Annotated[int, "any"] = 0
    """First merges, learned from the counts of all languages together (the hybrid variant)."""
    window_size: int | None = None
    """A language may have its share of so many last merges, times window_alpha (the moving-window
    variant; the authors' program: 100). None: as many as it needs."""
    window_alpha: float = 2.0
    """What a language may have of the window, in shares of an equal division."""

    recipe: ClassVar[str] = "parity"
    takes_runs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parallel", tuple(self.parallel))
        if not isinstance(self.global_merges, int) or self.global_merges < 0:
            raise ValueError(
                f"global_merges is {self.global_merges!r}; give a whole number from 0 (none)"
            )
        if self.global_merges and self.global_merges >= self.stage1_size - 256:
            raise ValueError(
                f"global_merges {self.global_merges} leaves no merge to serve a language: stage 1 "
                f"has {self.stage1_size - 256}; use recipe bpe, or give fewer"
            )
        check_positive("window_size", self.window_size)
        if not (math.isfinite(self.window_alpha) and self.window_alpha > 0):
            raise ValueError(f"window_alpha is {self.window_alpha!r}; give a number above 0")
        self._refuse_grapheme_safe("by language")

    @cached_property
    def parallel_text(self) -> Corpus | None:
        """The text of `parallel`."""
        return Corpus.from_specs(self.parallel) if self.parallel else None

    @property
    def read_from(self) -> list[str | Path]:
        """The other files that training reads, apart from the corpus."""
        paths = [] if self.parallel_text is None else self.parallel_text.paths
        return [*super().read_from, *paths]

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report.

        Raises CorpusError where the corpus has fewer than two languages or text without a label, or
        the parallel text has other languages or lengths.
        """
        if isinstance(corpus, Corpus):  # before it is read
            self._check_languages([part.language for part in corpus.parts])
        reader = self._reader_of(corpus)
        if isinstance(reader, CorpusReader):
            reader.by_language = True
        return self._learn(reader, context or RunContext())

    def _learn(self, reader: Reader, context: RunContext) -> Training:
        parallel = self._count_parallel(context)  # may refuse it: before the corpus is read
        words = learn_words(
            reader,
            self._word_rule(reader, self.stage1_size),
            self._word_weight(),
            context,
            partial(self._train_words, parallel=parallel),
        )
        of_language = words.facts["language_tokens"]
        mean = sum(of_language.values()) / len(of_language)
        reader.language_weights = {label: mean / max(n, 1) for label, n in of_language.items()}
        training = self._add_superwords(words, reader, context)
        return replace(training, report=detailed(training.report, ParityReport, **words.facts))

    def _reader_of(self, corpus: Source) -> Reader:
        """Return the corpus as stage 1 sees it."""
        if self.stage1_size < self.vocab_size:
            return self._two_stage_reader(corpus)
        return self._reader(corpus, get_pattern(self.pre_tokenizer))

    def _check_languages(self, labels: list[str | None]) -> list[str]:
        """Return the languages in order; CorpusError for labels that will not do."""
        languages = list(labelled(dict.fromkeys(labels, 0), self.recipe))
        if self.parallel_text is not None:
            found = {part.language or "text without a label" for part in self.parallel_text.parts}
            if differing := found ^ set(languages):
                differ = ", ".join(sorted(differing))
                raise CorpusError(
                    "parity measures all languages of the corpus on parallel text, and only one of "
                    f"the two has {differ}; give LANG=TEXT for each, labelled as the corpus is"
                )
        return languages

    def _train_words(
        self,
        counter: _core.WordCounter,
        reader: Reader,
        rule: WordRule,
        weight: WordWeight,
        context: RunContext,
        *,
        parallel: tuple[_core.WordCounter, list[str]] | None,
    ) -> Stage:
        """Learn the merges of stage 1. This empties the counter."""
        languages = self._check_languages(list(reader.language_bytes))
        if parallel is None:
            _require_words(counter, reader, "the text")
        numbers = {language: number for number, language in enumerate(languages)}
        measured, labels = (None, []) if parallel is None else parallel
        parity = _core.Parity(
            len(languages),
            [numbers[str(group.language)] for group in reader.groups],
            measured,
            [numbers[label] for label in labels],
            window=self.window_size or 0,
            alpha=self.window_alpha,
        )

        def train(
            vocab_size: int, start: Stage | None, parity: _core.Parity | None
        ) -> _core.Trained:
            return _core.train_bpe(
                counter,
                weight.to_core(reader.fixed_point_weights()),
                vocab_size,
                reader.min_count(rule.min_frequency),
                rule.to_core(),
                None if start is None else compile_merges(list(start.tokens), start.merges),
                [] if start is None else list(start.tokens),
                memory_bytes=context.share_of_memory(0.7),
                threads=context.threads,
                tie_break=_core.TieBreak.LAST_BYTE_IMAGES,
                keep_words=parity is None,
                parity=parity,
                progress=context.in_phase("stage 1"),
            )

        first = None
        if self.global_merges:
            size = 256 + self.global_merges
            first = Stage.of(train(size, None, None), rule.min_frequency)
        trained = train(rule.vocab_size, first, parity)
        stage = Stage.of(trained, rule.min_frequency)
        if first is not None:
            stage = replace(
                stage,
                merges=np.concatenate([first.merges, stage.merges]),
                counts=np.concatenate([first.counts, stage.counts]),
            )
        served = Counter(trained.served)
        facts = {
            "measured_on": "training text" if measured is None else "parallel text",
            "language_merges": {language: served[number] for language, number in numbers.items()},
            "language_tokens": dict(zip(languages, trained.language_tokens, strict=True)),
            "measured_tokens": dict(zip(languages, trained.measured_tokens, strict=True)),
        }
        return replace(stage, facts=facts)

    def _count_parallel(self, context: RunContext) -> tuple[_core.WordCounter, list[str]] | None:
        """Return the words of the parallel text and the language of each of their groups.

        Raises CorpusError for languages of different lengths.
        """
        if self.parallel_text is None:
            return None
        reader = replace(self._reader_of(self.parallel_text), sampling_alpha=None)
        assert isinstance(reader, CorpusReader)
        reader.by_language = True
        counter = reader.count_words(threads=context.threads)
        _require_words(counter, reader, "the parallel text")
        lines: Counter[str] = Counter()
        for group in reader.groups:
            lines[str(group.language)] += group.n_documents
        if len(set(lines.values())) > 1:
            named = ", ".join(f"{language} has {count}" for language, count in lines.items())
            raise CorpusError(
                f"parallel text says the same in every language, line by line, and {named} lines "
                "(blank ones left out); give as many of each"
            )
        return counter, [str(group.language) for group in reader.groups]
