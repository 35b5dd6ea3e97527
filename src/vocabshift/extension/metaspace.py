"""Continued BPE for SentencePiece BPE tokenizers in Hugging Face form ("▁" for the space).

Source: "Teaching Old Tokenizers New Words" (arXiv:2512.03989), section 3; adapting.md section 1.3.
A document is encoded as a whole, so what is counted is groups of tokens (`bpe.token_groups`), and
merges obey the rules that the model's own pieces were trained by. Characters that the vocabulary
lacks come first, the most frequent before the others, until the text is covered.

Where we differ from the paper's toolkit: the rules are read from the model where it is given, and
are SentencePiece's own (the prolonged sound mark goes with kana).
"""

from __future__ import annotations

from collections.abc import Callable

from vocabshift import _core
from vocabshift.bpe.missing_characters import COVERAGE, missing_characters, with_characters
from vocabshift.bpe.sentencepiece_rules import SentencePieceRules
from vocabshift.bpe.token_groups import GroupCutter, require_metaspace
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.extension.counted_text import Counted, CountedText
from vocabshift.extension.training_base import TrainingBase
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader

Progress = Callable[[int, int | None], None]


class MetaspaceBase(TrainingBase):
    """A SentencePiece BPE tokenizer in the form that training needs."""

    def __init__(self, tokenizer: Tokenizer, rules: SentencePieceRules | None = None) -> None:
        super().__init__(tokenizer)
        self.cutter = GroupCutter(tokenizer, rules)
        self.names = self.cutter.names  # added tokens outside the vocabulary stand in text too
        self.places = {token: place for place, token in enumerate(self.names)}

    def forbidden(self) -> set[bytes]:
        """What no merge may make: bytes, the unknown token and added tokens."""
        return {token.encode() for token in self.cutter.unmergeable}


def count_metaspace(
    base: Tokenizer,
    corpus: Corpus,
    *,
    rules: SentencePieceRules | None = None,
    normalizer: str | None = None,
    add_characters: float | None = COVERAGE,
    sampling_alpha: float | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Counted:
    """The groups of tokens of a corpus, after the characters that are missing were added.

    `rules` stand for those of the tokenizer's own model. `normalizer` (a Unicode form) runs before
    the tokenizer's own, which it keeps. `add_characters`: the share of the text's characters that
    the vocabulary is to hold, in (0, 1]; None adds none. The corpus is read twice. ValueError for
    a tokenizer that does not spell the space "▁"; CorpusError where nothing is left of a language
    when its text is normalized.
    """
    require_metaspace(base)
    reader = CorpusReader(corpus, (), normalizer, (), sampling_alpha, by_language=True)
    characters = missing_characters(base, reader, add_characters, threads, progress)
    form = MetaspaceBase(with_characters(base, characters), rules)
    words = _core.WordCounter(_core.PreTokenizer([]), threads)
    for block in reader.read(progress):
        form.cutter.add_to(words, block, threads)
    rule = _core.MergeRule(pieces=form.cutter.rule, forbidden=form.forbidden())
    return Counted(form, CountedText(words, reader, None, rule), characters)
