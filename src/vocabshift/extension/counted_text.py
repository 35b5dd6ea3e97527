"""CountedText: the text that is learned from, counted as the tokenizer's merges see it.

Owns counting for byte-level tokenizers, whose words are pre-tokens. What the words are of others
is `metaspace`'s business; what is learned from them, `continued`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vocabshift import _core
from vocabshift.bpe.tokenizer_reader import TokenizerReader, reader_of
from vocabshift.extension.learned import Learned
from vocabshift.extension.training_base import TrainingBase
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.weighing import Weighed

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, eq=False)
class CountedText:
    """Words with their counts by group; no merge ever reaches across a word."""

    words: _core.WordCounter
    weighed: Weighed  # the reader that counted: groups, weights, fingerprint
    encoder: _core.Encoder | None
    """Segments words into tokens; None where a word is the ids of its tokens already."""
    rule: _core.MergeRule
    """What no merge may make."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Counted text with the form of the base that learns from it."""

    form: TrainingBase  # of the base with `characters`
    text: CountedText
    characters: tuple[str, ...] = ()
    """Characters of the text that the base lacked; what is learned comes behind them."""

    def learned(self, of_form: Learned) -> Learned:
        """What was learned from `form`, as what is to be added to the base itself."""
        return replace(
            of_form, tokens=(*self.characters, *of_form.tokens), characters=self.characters
        )


def count_byte_level(
    base: TrainingBase,
    source: Corpus | CountFolder,
    *,
    normalizer: str | None = None,
    sampling_alpha: float | None = None,
    max_token_bytes: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> CountedText:
    """The pre-tokens of a corpus, or of a folder of counts, under the tokenizer's own pipeline.

    CorpusError where the tokenizer's normalizer leaves nothing of the text of a language.
    """
    tokenizer = base.tokenizer
    reader = reader_of(tokenizer, source, normalizer=normalizer, sampling_alpha=sampling_alpha)
    words = reader.count_words(threads=threads, progress=progress)
    if isinstance(reader, TokenizerReader):
        reader.require_kept_text(tokenizer.name)
    rule = _core.MergeRule(max_token_bytes=max_token_bytes or 0, forbidden=base.forbidden())
    return CountedText(words, reader, base.encoder, rule)
