"""`--recipe vocabshift`: IST's two stages, with languages weighed until they compress alike.

Owns the options and how the parts are put together: a pattern that keeps joiners inside words
(text/), the weights (language_weights.py), the two stages (superword.py). The page
docs/vocabshift-recipe.md says why each is there, and what it brings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.held_out import hold_out
from vocabshift.text.patterns import Pattern
from vocabshift.text.word_samples import draw_words
from vocabshift.trainers.language_weights import Weights, search_weights
from vocabshift.trainers.source import Source
from vocabshift.trainers.stage import Stage
from vocabshift.trainers.superword import SuperwordTrainer
from vocabshift.trainers.trainer import Training
from vocabshift.trainers.work import Work


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

    def run(self, corpus: Source, work: Work | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report.

        CorpusError for a folder of counts, and where a language has too little text to hold some
        of it out.
        """
        work = work or Work()
        if not isinstance(corpus, Corpus):
            raise CorpusError(
                "recipe vocabshift holds out documents, and a folder of counts has none; give "
                "--corpus"
            )
        reader = self._two_stage_reader(corpus)
        assert isinstance(reader, CorpusReader)
        if len(corpus.languages) > 1:
            with work.watch.phase("weights"):
                reader.language_weights = self._weights(corpus, work)
        return self._learn(reader, work)

    def _weights(self, corpus: Corpus, work: Work) -> Weights:
        saved = work.checkpoints.load("weights")
        if saved is not None:
            return dict(saved.info["weights"])
        rest, held_out = hold_out(corpus)
        if bare := _without_text(rest):
            raise CorpusError(
                f"nothing is left of {', '.join(map(repr, bare))} behind the documents held out, "
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
            return self._finish([stage], reader, work).tokenizer

        weights = search_weights(
            reader,
            samples,
            self._word_rule(reader, self.stage1_size),
            balance=self.balance,
            export=export,
            work=work,
        )
        work.checkpoints.save(
            "weights", lambda path: path.write_bytes(b""), {"weights": list(weights.items())}
        )
        return weights


def _without_text(corpus: Corpus) -> list[str | None]:
    """Languages without a document; of the others no more than one block is read."""
    return [
        label
        for label in corpus.languages
        if not any(
            next(part.read(), None) is not None for part in corpus.parts if part.language == label
        )
    ]
