"""Plain byte-level BPE: merge for merge what `tokenizers` learns (method.md, section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import get_pattern
from vocabshift.trainers.byte_level_trainer import ByteLevelTrainer
from vocabshift.trainers.trainer import Progress, Stopwatch, Training


@dataclass(frozen=True, kw_only=True)
class BpeTrainer(ByteLevelTrainer):
    """Byte-pair encoding inside the words of a pattern."""

    recipe: ClassVar[str] = "bpe"

    def run(
        self, corpus: Corpus, *, threads: int = 1, progress: Progress | None = None
    ) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        watch = Stopwatch()
        reader = self._reader(corpus, get_pattern(self.pre_tokenizer))
        words = self._learn_words(reader, self.vocab_size, watch, threads, progress)
        return self._finish([words], reader, watch)
