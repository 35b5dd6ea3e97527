"""`--recipe vocabshift`: IST's two stages, with languages weighted until they compress alike.

It has a pattern that keeps joiners inside words, a weight for each language, and the two stages of
superword.py. docs/vocabshift-recipe.md explains the reason for each part, and its effect.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.held_out import hold_out
from vocabshift.text.patterns import Pattern
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.base import RunContext, Source, Training, TrainingReport, detailed
from vocabshift.trainers.stages import Stage, WordRule, WordWeight, train_words
from vocabshift.trainers.superword import SuperwordTrainer

# The weights of languages are measured on distinct words drawn from the text of each.
#
# Running text would not do: with distinct words the rare ones weigh as much as the frequent ones,
# and a narrow collection with many repetitions does not look easier than it is. The number is the
# same for each language, because more text contains rarer words.

WORDS = 5_000
"""Distinct words drawn of a language, where it has as many."""
_DOCUMENTS = 4_000
_CHARACTERS = 2_000  # read from each document, since one may be a whole file


@dataclass(frozen=True, slots=True)
class WordSample:
    """What was drawn of one language."""

    words: tuple[str, ...]  # distinct, each with a space before it
    characters_per_byte: float  # Unicode characters, of all documents

    @property
    def n_characters(self) -> int:
        """Of the words, their spaces included."""
        return sum(map(len, self.words))


def draw_words(texts: Iterable[tuple[str | None, str]]) -> Mapping[str | None, WordSample]:
    """Draw words of whole documents, at random with a fixed seed.

    `texts` are (language, document); memory does not grow with their number. A language without
    words is left out.
    """
    drawn: dict[str | None, list[str]] = {}
    seen: dict[str | None, int] = {}
    sizes: dict[str | None, list[int]] = {}
    chance = random.Random(0)
    for language, text in texts:
        characters_and_bytes = sizes.setdefault(language, [0, 0])
        characters_and_bytes[0] += len(text)
        characters_and_bytes[1] += len(text.encode())
        documents = drawn.setdefault(language, [])
        seen[language] = seen.get(language, 0) + 1
        place = chance.randrange(seen[language])
        if len(documents) < _DOCUMENTS:
            documents.append(documents[place] if place < len(documents) else text[:_CHARACTERS])
            documents[place] = text[:_CHARACTERS]
        elif place < _DOCUMENTS:
            documents[place] = text[:_CHARACTERS]
    return {
        language: WordSample(words, sizes[language][0] / sizes[language][1])
        for language, documents in drawn.items()
        if (words := _distinct(documents))
    }


def _distinct(documents: Iterable[str]) -> tuple[str, ...]:
    words: dict[str, None] = {}
    for document in documents:
        words.update(dict.fromkeys(document.split()))
        if len(words) >= WORDS:
            break
    return tuple(" " + word for word in list(words)[:WORDS])


# The weights under which a sentence needs about the same number of tokens in every language.
#
# - Languages start equal: each counts as if it had as many Unicode characters as any other.
#   Translations have about as many characters in all languages (not as many bytes or words). So
#   each has the same amount of content, and tokens per character measure tokens per content.
# - Then the word stage is trained. A language counts in proportion to the tokens per character of
#   its held-out words, to the power of `balance`. A second round with these weights has no
#   measurable effect.

Samples = Mapping[str | None, WordSample]
Weights = dict[str | None, float]

CODE = "code"
"""The label of program text: it gets the share of a language, whatever tokens it takes."""


def equal_characters(reader: CorpusReader, samples: Samples) -> Weights:
    """Return weights under which all languages have equally many characters; total bytes stay."""
    return _scaled(
        {
            language: 1 / _characters(reader, language, sample)
            for language, sample in samples.items()
        },
        reader,
    )


def search_weights(
    reader: CorpusReader,
    samples: Samples,
    rule: WordRule,
    *,
    balance: float,
    export: Callable[[Stage], Tokenizer],
    context: RunContext,
) -> Weights:
    """Find the weights by training the word stage once, or not at all if `balance` is 0.

    `export` makes the tokenizer of a word stage. The groups of `reader` must be languages.
    """
    reader.language_weights = {}
    folder = context.folder or Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix="vocabshift-", dir=folder) as temporary:
        counter = reader.count_words(
            threads=context.threads,
            progress=context.in_phase("weights"),
            memory_bytes=context.share_of_memory(0.5),
            spill_folder=Path(temporary),
        )
        base = equal_characters(reader, samples)
        if not balance:
            return base
        reader.language_weights = base
        rates = _rates(export(train_words(counter, reader, rule, WordWeight(), context)), samples)
    return _scaled({k: base[k] * rates[k] ** balance for k in base}, reader)


def _rates(tokenizer: Tokenizer, samples: Samples) -> dict[str | None, float]:
    """Return tokens per character of each language's words, divided by their geometric mean."""
    encoder = Encoder(tokenizer)
    logs = {
        language: np.log(len(encoder.encode_batch(list(sample.words))[0]) / sample.n_characters)
        for language, sample in samples.items()
    }
    mean = np.mean([value for language, value in logs.items() if language != CODE])
    return {k: 1.0 if k == CODE else float(np.exp(value - mean)) for k, value in logs.items()}


def _characters(reader: CorpusReader, language: str | None, sample: WordSample) -> float:
    return reader.language_bytes[language] * sample.characters_per_byte


def _scaled(weights: Weights, reader: CorpusReader) -> Weights:
    """Scale the weights so that the weighted text has as many bytes as the text itself."""
    sizes = reader.language_bytes
    total = sum(weights[language] * sizes[language] for language in weights)
    return {k: weight * sum(sizes.values()) / total for k, weight in weights.items()}


@dataclass(frozen=True, slots=True)
class BalancedReport(TrainingReport):
    """What a run did."""

    language_weights: Mapping[str, float]
    """How often a byte of each language counts; weights of the corpus come on top. Empty for text
    of one language."""


def facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts shown to users: which languages count most and least."""
    weights = sorted(result["language_weights"].items(), key=lambda item: -item[1])
    if not weights:
        return {}
    shown = ", ".join(f"{language} {weight:.2f}" for language, weight in weights)
    return {"a byte counts": shown}


@dataclass(frozen=True, kw_only=True)
class BalancedTrainer(SuperwordTrainer):
    """Two-stage BPE over languages that count what makes them need as many tokens as each other.

    One document in twenty sets the weights; the tokenizer learns from all of them. Text of one
    language, or without labels, has nothing to weigh.
    """

    pre_tokenizer: str | Pattern = "indic"
    stage2_pre_tokenizer: str | Pattern = "indic-stage2"
    balance: float = 2.0
    """A language counts in proportion to its tokens per character to this power; 0: languages
    count as if they had as many characters each."""

    recipe: ClassVar[str] = "vocabshift"
    takes_runs: ClassVar[bool] = False  # its weights come from documents held out

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling_alpha is not None:
            raise ValueError(
                "recipe vocabshift finds by itself what languages count; leave sampling_alpha out, "
                "or use recipe ist, which takes it"
            )
        if not (math.isfinite(self.balance) and 0 <= self.balance <= 4):
            raise ValueError(
                f"balance is {self.balance}; give a number from 0 (as many characters of each "
                "language) to 4"
            )

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report.

        Raises CorpusError for a folder of counts, and if a language has too little text to hold
        some of it out.
        """
        context = context or RunContext()
        if not isinstance(corpus, Corpus):
            raise CorpusError(
                "recipe vocabshift holds out documents, and a folder of counts has none; give "
                "--corpus"
            )
        reader = self._two_stage_reader(corpus)
        assert isinstance(reader, CorpusReader)
        if len(corpus.languages) > 1:
            with context.watch.phase("weights"):
                reader.language_weights = self._weights(corpus, context)
        training = self._learn(reader, context)
        weights = reader.language_weights or {}
        found = {label: weight for label, weight in weights.items() if label is not None}
        return replace(
            training, report=detailed(training.report, BalancedReport, language_weights=found)
        )

    def _weights(self, corpus: Corpus, context: RunContext) -> Weights:
        saved = context.checkpoints.load("weights")
        if saved is not None:
            return dict(saved.info["weights"])
        rest, held_out = hold_out(corpus)
        if bare := _without_text(rest):
            raise CorpusError(
                f"nothing is left of {', '.join(map(repr, bare))} after the documents held out, "
                "which set what a language counts; give at least two documents of it, or use "
                "recipe ist"
            )
        samples = draw_words(held_out.texts())
        reader = self._two_stage_reader(rest)
        assert isinstance(reader, CorpusReader)
        missing = [label for label in corpus.languages if label not in samples]
        if missing:
            raise CorpusError(
                f"no word in the documents held out of {', '.join(map(repr, missing))}, which set "
                "what a language counts; give more text of it, or use recipe ist"
            )

        def export(stage: Stage) -> Tokenizer:
            return self._finish([stage], reader, context).tokenizer

        weights = search_weights(
            reader,
            samples,
            self._word_rule(reader, self.stage1_size),
            balance=self.balance,
            export=export,
            context=context,
        )
        context.checkpoints.save(
            "weights", lambda path: path.write_bytes(b""), {"weights": list(weights.items())}
        )
        return weights


def _without_text(corpus: Corpus) -> list[str | None]:
    """Return languages without a document; at most one block of each other language is read."""
    return [
        label
        for label in corpus.languages
        if not any(
            next(part.read(), None) is not None for part in corpus.parts if part.language == label
        )
    ]
