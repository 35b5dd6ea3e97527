"""Plain byte-level BPE: merge for merge what `tokenizers` learns (method.md, section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vocabshift.text.patterns import get_pattern
from vocabshift.trainers.byte_level_trainer import ByteLevelTrainer
from vocabshift.trainers.source import Source
from vocabshift.trainers.trainer import Training
from vocabshift.trainers.word_stage import WordWeight, learn_words
from vocabshift.trainers.work import Work


@dataclass(frozen=True, kw_only=True)
class BpeTrainer(ByteLevelTrainer):
    """Byte-pair encoding inside the words of a pattern."""

    recipe: ClassVar[str] = "bpe"

    def run(self, corpus: Source, work: Work | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        work = work or Work()
        reader = self._reader(corpus, get_pattern(self.pre_tokenizer))
        rule = self._word_rule(reader, self.vocab_size)
        words = learn_words(reader, rule, WordWeight(), work)
        return self._finish([words], reader, work)
