"""Counts the text that an extension learns from, as the tokenizer's merges see it.

The words of a byte-level tokenizer are its pre-tokens. A SentencePiece BPE tokenizer ("▁" for the
space) encodes a document as a whole, so groups of tokens are counted
(`tokenizer.metaspace_reader`). Merges follow the rules under which the model's own pieces were
trained. Characters that the vocabulary lacks are added first, by descending frequency, until the
text is covered.

Source: arXiv:2512.03989, section 3; docs/algorithms/continued.md. Where we differ from the paper's
toolkit: the rules are read from the model if it is given, and they are SentencePiece's own (the
prolonged sound mark belongs to kana).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.extension.continued import Additions, TrainingBase
from vocabshift.extension.options import ExtensionOptions
from vocabshift.progress import PhaseProgress
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.counting import CorpusReader, CountReader
from vocabshift.text.weighing import WeightedText
from vocabshift.tokenizer.components import SentencePieceRules
from vocabshift.tokenizer.corpus_reader import TokenizerReader, reader_of
from vocabshift.tokenizer.metaspace_reader import (
    COVERAGE,
    GroupCutter,
    missing_characters,
    require_metaspace,
    with_characters,
)
from vocabshift.tokenizer.token_bytes import is_metaspace
from vocabshift.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class CountedText:
    """Words with their counts by group; no merge crosses the boundary of a word."""

    words: _core.WordCounter
    reader: WeightedText  # that counted: groups, weights, fingerprint
    encoder: _core.Encoder | None
    """Segments words into tokens; None where a word is the ids of its tokens already."""
    rule: _core.MergeRule
    """What no merge may make."""


@dataclass(frozen=True, eq=False)
class TrainingInput:
    """Counted text with the training form of the base."""

    form: TrainingBase  # of the base with `characters`
    text: CountedText
    characters: tuple[str, ...] = ()
    """Characters of the text that the base lacked; what is learned comes after them."""
    plain: TrainingInput | None = None
    """The same text as the base without `characters` sees it: where wanted, and other."""

    def additions(self, of_form: Additions) -> Additions:
        """Return what was learned from `form` as additions to the base itself."""
        return replace(
            of_form, tokens=(*self.characters, *of_form.tokens), characters=self.characters
        )


class TextCounts:
    """A text whose words are counted once for each way in which tokenizers cut it.

    Tokenizers that differ only in vocabulary and merges share the counts: for example a base and
    its pruned version, or the base of a plan and of the extension after it. An object replaces its
    source wherever words are counted, and it keeps the counts as long as it exists.
    """

    def __init__(self, source: Corpus | CountFolder) -> None:
        self.source = source
        self._words: dict[str, tuple[_core.WordCounter, TokenizerReader | CountReader]] = {}

    @classmethod
    def of(cls, source: Corpus | CountFolder | TextCounts) -> TextCounts:
        """Return the source itself if it is a TextCounts, else a new one."""
        return source if isinstance(source, TextCounts) else cls(source)

    def words_of(
        self,
        tokenizer: Tokenizer,
        *,
        normalizer: str | None,
        sampling_alpha: float | None,
        threads: int = 1,
        progress: PhaseProgress | None = None,
    ) -> tuple[_core.WordCounter, TokenizerReader | CountReader]:
        """Return words as the tokenizer cuts them, and the reader that counted them.

        The caller must change neither. `progress` is called only for words that are counted now.
        """
        reader = reader_of(
            tokenizer, self.source, normalizer=normalizer, sampling_alpha=sampling_alpha
        )
        added = [asdict(replace(token, id=0)) for token in tokenizer.added_tokens]
        parts = (tokenizer.normalizer, tokenizer.pre_tokenizer, added, normalizer, sampling_alpha)
        key = json.dumps(parts)
        if key not in self._words:
            words = reader.count_words(threads=threads, progress=progress)
            self._words[key] = (words, reader)
        return self._words[key]


def count_byte_level(
    base: TrainingBase,
    source: Corpus | CountFolder | TextCounts,
    *,
    normalizer: str | None = None,
    sampling_alpha: float | None = None,
    max_token_bytes: int | None = None,
    threads: int = 1,
    progress: PhaseProgress | None = None,
) -> CountedText:
    """Count the pre-tokens of a corpus, or of a folder of counts, under the tokenizer's pipeline.

    Raises CorpusError if the tokenizer's normalizer removes all text of a language.
    """
    tokenizer = base.tokenizer
    words, reader = TextCounts.of(source).words_of(
        tokenizer,
        normalizer=normalizer,
        sampling_alpha=sampling_alpha,
        threads=threads,
        progress=progress,
    )
    if isinstance(reader, TokenizerReader):
        reader.require_kept_text(tokenizer.name)
    rule = _core.MergeRule(max_token_bytes=max_token_bytes or 0, forbidden=base.forbidden())
    return CountedText(words, reader, base.encoder, rule)


class MetaspaceBase(TrainingBase):
    """A SentencePiece BPE tokenizer in the form that training needs."""

    def __init__(self, tokenizer: Tokenizer, rules: SentencePieceRules | None = None) -> None:
        super().__init__(tokenizer)
        self.cutter = GroupCutter(tokenizer, rules)

    @cached_property
    def names(self) -> list[str]:
        """Return the tokens by place, added ones outside the vocabulary included."""
        return self.cutter.names

    @cached_property
    def tokens(self) -> list[bytes]:
        """Return the texts of the tokens by place."""
        return [token.encode() for token in self.names]

    @cached_property
    def held(self) -> list[int]:
        """Return the places of the tokens that are a part of some merge."""
        parts = set(chain.from_iterable(self.tokenizer.model.merges))
        return [self.places[token] for token in parts]

    def forbidden(self) -> set[bytes]:
        """Return what no merge may make: bytes, the unknown token and added tokens."""
        return {token.encode() for token in self.cutter.unmergeable}


def count_metaspace(
    base: Tokenizer,
    corpus: Corpus,
    *,
    rules: SentencePieceRules | None = None,
    normalizer: str | None = None,
    add_characters: float | None = COVERAGE,
    with_plain: bool = False,
    sampling_alpha: float | None = None,
    threads: int = 1,
    progress: PhaseProgress | None = None,
) -> TrainingInput:
    """Count the groups of tokens of a corpus, after missing characters were added.

    `rules` replace those of the tokenizer's own model. `normalizer` (a Unicode form) runs before
    the tokenizer's own, which is kept. `add_characters` is the share of the text's characters that
    the vocabulary should hold, in (0, 1]; None adds none. The corpus is read twice: for the
    characters, then for the groups. `with_plain` also counts the groups without the new characters.
    Raises ValueError for a tokenizer that does not spell the space "▁", and CorpusError if
    normalization removes all text of a language.
    """
    require_metaspace(base)
    reader = CorpusReader(corpus, (), normalizer, (), sampling_alpha, by_language=True)
    characters = missing_characters(base, reader, add_characters, threads, progress)
    forms = [MetaspaceBase(with_characters(base, characters), rules)]
    if characters and with_plain:
        forms.append(MetaspaceBase(base, rules))
    counters = [_core.WordCounter(_core.PreTokenizer([]), threads) for _ in forms]
    for block in reader.read(progress):
        for form, words in zip(forms, counters, strict=True):
            form.cutter.add_to(words, block, threads)
    texts = [
        CountedText(
            words,
            reader,
            None,
            _core.MergeRule(pieces=form.cutter.rule, forbidden=form.forbidden()),
        )
        for form, words in zip(forms, counters, strict=True)
    ]
    plain = TrainingInput(forms[1], texts[1]) if len(forms) > 1 else None
    return TrainingInput(forms[0], texts[0], characters, plain)


def count_text(
    base: Tokenizer,
    source: Corpus | CountFolder | TextCounts,
    options: ExtensionOptions,
    threads: int = 1,
    progress: PhaseProgress | None = None,
    *,
    with_plain: bool = False,
) -> TrainingInput:
    """Count the text as the merges of `base` see it; ValueError if options do not fit its kind.

    `with_plain`: see `TrainingInput.plain`.
    """
    counts = TextCounts.of(source)
    if is_metaspace(base):
        if not isinstance(counts.source, Corpus):
            raise CorpusError(
                f"{base.name} encodes whole documents, which counted words are not; give --corpus"
            )
        if options.max_token_bytes is not None:
            raise ValueError(
                f"max_token_bytes is for byte-level tokenizers; the pieces of {base.name} are as "
                "long as its SentencePiece model allows"
            )
        return count_metaspace(
            base,
            counts.source,
            normalizer=options.normalizer,
            add_characters=options.character_coverage,
            with_plain=with_plain,
            sampling_alpha=options.sampling_alpha,
            threads=threads,
            progress=progress,
        )
    form = TrainingBase(base)
    text = count_byte_level(
        form,
        counts,
        normalizer=options.normalizer,
        sampling_alpha=options.sampling_alpha,
        max_token_bytes=options.max_token_bytes,
        threads=threads,
        progress=progress,
    )
    return TrainingInput(form, text)
