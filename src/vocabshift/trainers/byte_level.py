"""The base of every byte-level trainer: options, readers and the finished tokenizer; and BPE.

Owns the options that all of them share and how special tokens are added. Each trainer decides which
merges follow the word stage; plain BPE has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.progress import Progress
from vocabshift.text.counting import CorpusReader
from vocabshift.text.llama_cpp import DEPLOYABLE
from vocabshift.text.normalize import normalizer_spec
from vocabshift.text.patterns import Pattern, get_pattern, to_spec
from vocabshift.text.writing import LINKERS
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import check_special_tokens
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.token_bytes import is_superword
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.base import (
    Reader,
    RunContext,
    Source,
    Training,
    TrainingReport,
    check_positive,
    check_vocab_size,
    make_reader,
    run_figures,
)
from vocabshift.trainers.special_tokens import (
    add_special_tokens,
    copy_special_tokens,
    special_contents,
)
from vocabshift.trainers.stages import Stage, WordRule, WordWeight, learn_words

_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": False,
    "use_regex": False,
}


@dataclass(frozen=True, kw_only=True)
class ByteLevelTrainer:
    """Options of every byte-level trainer."""

    vocab_size: int
    """Tokens, the 256 bytes included, special tokens not."""
    pre_tokenizer: str | Pattern = "o200k"
    """Name of a pattern, or a regex whose matches (and the gaps between them) are words;
    "deployable": the pattern of llama.cpp with the highest ceiling on the corpus."""
    min_frequency: int = 1
    """A pair must occur this often to merge."""
    max_token_bytes: int | None = None
    """Longest token, in bytes."""
    normalizer: Annotated[str | None, "STEP[+STEP…]"] = None
    """Steps such as "nfc" or "nfc+nukta", as `vocabshift normalize` takes them; they travel inside
    the tokenizer. None: text is left alone."""
    sampling_alpha: Annotated[float | None, "share"] = None
    """Temperature over the languages of the corpus, in (0, 1]: each counts as if it had its share
    of the bytes to this power. Counts change, no text is copied. None: as large as it is."""
    grapheme_safe: bool = False
    """No token that holds more than one orthographic syllable begins or ends inside one, and
    syllables are learned before what joins them."""
    special_tokens: tuple[str, ...] = ()
    """Added after the vocabulary."""
    special_tokens_from: Annotated[str | None, "TOKENIZER"] = None
    """A tokenizer whose special tokens, roles and chat template are copied."""

    recipe: ClassVar[str]
    takes_runs: ClassVar[bool] = False
    """Whether a second stage can be learned from counted runs (`CountFolder.runs`)."""

    def __post_init__(self) -> None:
        check_vocab_size(self.vocab_size)
        check_positive("min_frequency", self.min_frequency)
        check_positive("max_token_bytes", self.max_token_bytes)
        if self.pre_tokenizer != DEPLOYABLE:
            get_pattern(self.pre_tokenizer)
        elif hasattr(self, "stage2_pre_tokenizer"):
            raise ValueError(
                f"recipe {self.recipe} saves the boundaries of its second stage, for which "
                "llama.cpp has no pattern; leave deployable out, or use recipe bpe"
            )
        normalizer_spec(self.normalizer)
        check_special_tokens(self.special_tokens)

    @property
    def read_from(self) -> list[str | Path]:
        """The other files that training reads, apart from the corpus."""
        return [] if self.special_tokens_from is None else [self.special_tokens_from]

    @property
    def inherited(self) -> set[str]:
        """Tokens that were not learned here: only a base has any."""
        return set()

    def train(
        self, corpus: Source, *, threads: int = 1, progress: Progress | None = None
    ) -> Tokenizer:
        """Train on `corpus` and return the tokenizer; it does not depend on `threads`."""
        return self.run(corpus, RunContext(threads=threads, progress=progress)).tokenizer

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        raise NotImplementedError

    def _pattern(self, corpus: Source) -> Pattern:
        """Return the pattern of words; CorpusError if it is to be chosen on counts."""
        if self.pre_tokenizer != DEPLOYABLE:
            return get_pattern(self.pre_tokenizer)
        from vocabshift.checks.deployable import choose, require_text

        return choose(require_text(corpus), normalizer=self.normalizer).llama_cpp.pattern

    def _reader(self, corpus: Source, pattern: Pattern, words: Pattern = ()) -> Reader:
        """Return the corpus as stage 1 sees it: cut by `pattern`, then by `words`."""
        contents = set(self.special_tokens)
        if self.special_tokens_from is not None:
            contents |= special_contents(self.special_tokens_from)
        return make_reader(
            corpus,
            pattern,
            words,
            normalizer=self.normalizer,
            special_tokens=tuple(sorted(contents)),
            sampling_alpha=self.sampling_alpha,
        )

    def _text_reader(self, corpus: Source, pattern: Pattern) -> CorpusReader:
        """Return the same for a recipe that needs the text itself; CorpusError for counts."""
        reader = self._reader(corpus, pattern)
        if not isinstance(reader, CorpusReader):
            raise CorpusError(
                f"recipe {self.recipe} needs the text itself, and a folder of counts does not say "
                "in what order words stood; give --corpus"
            )
        return reader

    def _word_rule(self, reader: Reader, vocab_size: int) -> WordRule:
        """Return the rule of stage 1."""
        return WordRule(
            vocab_size=vocab_size,
            min_frequency=self.min_frequency,
            max_token_bytes=self.max_token_bytes or 0,
            forbidden=forbidden(reader),
            conjoiners=self._conjoiners,
        )

    @property
    def _conjoiners(self) -> str:
        return "".join(LINKERS.values()) if self.grapheme_safe else ""

    def _refuse_grapheme_safe(self, order: str) -> None:
        """Raise ValueError for `grapheme_safe` if the recipe orders its merges otherwise."""
        if self.grapheme_safe:
            raise ValueError(
                f"{self.recipe} takes merges {order}, and grapheme_safe puts syllables first; "
                "leave it out, or use recipe bpe"
            )

    def _finish(self, stages: list[Stage], reader: Reader, context: RunContext) -> Training:
        """Make tokenizer and report from all stages' merges; the last stage's pattern is saved."""
        tokens = stages[-1].tokens
        merges = np.concatenate([stage.merges for stage in stages])
        model = BpeModel.of_strings(_core.ModelStrings.of_bytes(list(tokens), merges))
        tokenizer = Tokenizer(
            model=model,
            normalizer=normalizer_spec(self.normalizer),
            pre_tokenizer=to_spec(reader.pattern),
            post_processor=_BYTE_LEVEL,
            decoder=_BYTE_LEVEL,
            name=self.recipe,
        )
        if self.special_tokens_from is not None:
            tokenizer = copy_special_tokens(tokenizer, self.special_tokens_from)
        tokenizer = add_special_tokens(tokenizer, self.special_tokens)
        report = TrainingReport(
            **run_figures(self, reader, context),
            vocab_size=tokenizer.vocab_size,
            merges=len(merges),
            stage1_merges=len(stages[0].merges),
            stage2_merges=len(merges) - len(stages[0].merges),
            superwords=sum(is_superword(token) for token in tokens if token.rfind(b" ") > 0),
            training_tokens=stages[-1].training_tokens + reader.n_special,
            stopped_because=stages[-1].stopped,
            dropped_words=sum(stage.dropped_words for stage in stages),
            dropped_occurrences=sum(stage.dropped_occurrences for stage in stages),
            dropped_below=max(stage.dropped_below for stage in stages),
            stopped_below=stages[-1].stopped_below,
        )
        return Training(tokenizer, report, reader.language_bytes)


def count_tokens(encoder: _core.Encoder, reader: CorpusReader, context: RunContext) -> int:
    """Count the tokens of the whole text under combined merges, unweighted."""
    return sum(
        _core.count_tokens(
            encoder, reader.scanner, block.data, block.starts, block.ends, context.threads
        )
        for block in reader.read(context.in_phase("encode"))
    )


def forbidden(reader: Reader) -> set[bytes]:
    """Return what no merge may make: ordinary text must not yield a special token.

    A token must not be spelled like one either: the vocabulary writes " the" as "Ġthe".
    """
    spelt = {
        byte_level.to_bytes(content)
        for content in reader.special_tokens
        if byte_level.is_image(content)
    }
    return spelt | {content.encode() for content in reader.special_tokens}


@dataclass(frozen=True, kw_only=True)
class BpeTrainer(ByteLevelTrainer):
    """Byte-pair encoding inside the words of a pattern: merge for merge what `tokenizers` learns.

    See docs/algorithms/bpe.md.
    """

    recipe: ClassVar[str] = "bpe"

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        context = context or RunContext()
        reader = self._reader(corpus, self._pattern(corpus))
        rule = self._word_rule(reader, self.vocab_size)
        words = learn_words(reader, rule, WordWeight(), context)
        return self._finish([words], reader, context)
