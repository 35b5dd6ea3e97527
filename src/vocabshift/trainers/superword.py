"""Two-stage BPE: subwords inside words, then superwords inside sentences (IST, section 3).

Stage 2 starts from the stage-2 pieces as the merges of stage 1 segment them, by rank over the
whole piece: exactly what the exported tokenizer, which carries the stage-2 pattern, will do. So
the tokens that training ends with are the tokens that the saved file gives.

Where we differ: stage 1 takes its words inside the pieces of stage 2. Under the stage-1 pattern
alone it would learn tokens across the walls that stay ("!=", ";" with a newline), which the
exported pattern can never produce again: dead rows in the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.trainers.byte_level_trainer import ByteLevelTrainer, forbidden
from vocabshift.trainers.source import Reader, Source
from vocabshift.trainers.superword_stage import SuperwordRule, learn_superwords
from vocabshift.trainers.trainer import Training, check_positive
from vocabshift.trainers.word_stage import WordWeight, learn_words
from vocabshift.trainers.work import Work


@dataclass(frozen=True, kw_only=True)
class SuperwordTrainer(ByteLevelTrainer):
    """IST: `transition` of the vocabulary inside words, the rest inside sentences.

    `pre_tokenizer` is the pattern of stage 1.
    """

    transition: float = 0.9
    """Share of the vocabulary that stage 1 learns, in (0, 1]; 1: there is no stage 2."""
    stage2_pre_tokenizer: str | Pattern = "ist-stage2"
    """Pattern of stage 2, and of the exported tokenizer (followed by that of stage 1 where there is
    no stage 2: without superwords the words stay apart)."""
    max_words: int | None = None
    """Most words, divided by spaces, that a superword may hold."""

    recipe: ClassVar[str] = "ist"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.transition <= 1:
            raise ValueError(
                f"transition is {self.transition}; give the share of the vocabulary that is "
                "learned inside words, above 0 and at most 1 (the papers use 0.9)"
            )
        if self.stage1_size < 256:
            raise ValueError(
                f"transition {self.transition} of vocab_size {self.vocab_size} leaves stage 1 "
                f"{self.stage1_size} tokens, below the alphabet of 256 bytes; raise either"
            )
        check_positive("max_words", self.max_words)
        get_pattern(self.stage2_pre_tokenizer)

    @property
    def stage1_size(self) -> int:
        """Tokens that stage 1 may learn up to, the bytes included."""
        return round(self.transition * self.vocab_size)

    def run(self, corpus: Source, work: Work | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        return self._learn(self._two_stage_reader(corpus), work or Work())

    def _two_stage_reader(self, corpus: Source) -> Reader:
        """The corpus as stage 1 sees it: words, inside the pieces of stage 2."""
        pieces = get_pattern(self.stage2_pre_tokenizer)
        return self._reader(corpus, pieces, get_pattern(self.pre_tokenizer))

    def _learn(self, reader: Reader, work: Work) -> Training:
        """Both stages, and the report."""
        rule = self._word_rule(reader, self.stage1_size)
        words = learn_words(reader, rule, self._word_weight(), work)
        if self.stage1_size == self.vocab_size:
            return self._finish([words], reader, work)
        reader = reader.again(get_pattern(self.stage2_pre_tokenizer))
        superwords = learn_superwords(reader, words, self._superword_rule(reader), work)
        return self._finish([words, superwords], reader, work)

    def _word_weight(self) -> WordWeight:
        """What words count beside others."""
        return WordWeight()

    def _superword_rule(self, reader: Reader) -> SuperwordRule:
        """What stage 2 may learn."""
        return SuperwordRule(
            vocab_size=self.vocab_size,
            min_frequency=self.min_frequency,
            max_token_bytes=self.max_token_bytes or 0,
            max_words=self.max_words or 0,
            forbidden=forbidden(reader),
            conjoiners=self._conjoiners,
        )


@dataclass(frozen=True, kw_only=True)
class SuperBpeTrainer(SuperwordTrainer):
    """SuperBPE's settings: no sentence walls, at most four words in a superword.

    Its filter on a colon before a space is left out, and marks count as letters in the pattern:
    SuperBPE's own cuts Indian words at two marks in a row.
    """

    stage2_pre_tokenizer: str | Pattern = "superbpe-stage2"
    max_words: int | None = 4

    recipe: ClassVar[str] = "superbpe"
