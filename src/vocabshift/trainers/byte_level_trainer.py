"""What every byte-level trainer is made of: options, the word stage, and the finished tokenizer.

Owns the options that all of them share and how special tokens are put on top. Which merges come
after the word stage is each trainer's own business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from vocabshift import _core
from vocabshift.bpe import byte_level
from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.provenance import config_hash
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader, count_words
from vocabshift.text.normalize import normalizer_spec
from vocabshift.text.patterns import Pattern, get_pattern, to_spec
from vocabshift.trainers.special_tokens import (
    add_special_tokens,
    check_special_tokens,
    copy_special_tokens,
    special_contents,
)
from vocabshift.trainers.trainer import (
    Progress,
    Stopwatch,
    Training,
    TrainingReport,
    check_positive,
    check_vocab_size,
    config_of,
)

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
    """Name of a pattern, or a regex whose matches (and the gaps between them) are words."""
    min_frequency: int = 1
    """A pair must occur this often to merge."""
    max_token_bytes: int | None = None
    """Longest token, in bytes."""
    normalizer: str | None = None
    """"nfc", "nfd", "nfkc" or "nfkd"; travels inside the tokenizer. None: text is left alone."""
    special_tokens: tuple[str, ...] = ()
    """Added after the vocabulary."""
    special_tokens_from: str | None = None
    """A tokenizer whose special tokens, roles and chat template are copied."""

    recipe: ClassVar[str]

    def __post_init__(self) -> None:
        check_vocab_size(self.vocab_size)
        check_positive("min_frequency", self.min_frequency)
        check_positive("max_token_bytes", self.max_token_bytes)
        get_pattern(self.pre_tokenizer)
        normalizer_spec(self.normalizer)
        check_special_tokens(self.special_tokens)

    def train(
        self, corpus: Corpus, *, threads: int = 1, progress: Progress | None = None
    ) -> Tokenizer:
        """Train on `corpus` and return the tokenizer; it does not depend on `threads`."""
        return self.run(corpus, threads=threads, progress=progress).tokenizer

    def run(
        self, corpus: Corpus, *, threads: int = 1, progress: Progress | None = None
    ) -> Training:
        """Train on `corpus` and return the tokenizer with a report."""
        raise NotImplementedError

    def _learn_words(
        self,
        reader: CorpusReader,
        vocab_size: int,
        watch: Stopwatch,
        threads: int,
        progress: Progress | None,
    ) -> _core.Trained:
        """The word stage: count pre-tokens, then merge up to `vocab_size` tokens."""
        with watch.phase("count"):
            counter = count_words(reader, threads=threads, progress=in_phase(progress, "count"))
        with watch.phase("stage 1"):
            return _core.train_bpe(
                counter,
                reader.fixed_point_weights(),
                vocab_size,
                reader.min_count(self.min_frequency),
                self.max_token_bytes or 0,
                forbidden(reader),
                in_phase(progress, "stage 1"),
                threads,
            )

    def _reader(self, corpus: Corpus, pattern: Pattern) -> CorpusReader:
        """The corpus as stage 1 sees it."""
        contents = set(self.special_tokens)
        if self.special_tokens_from is not None:
            contents |= special_contents(self.special_tokens_from)
        return CorpusReader(corpus, pattern, self.normalizer, tuple(sorted(contents)))

    def _finish(
        self,
        stages: list[_core.Trained],
        reader: CorpusReader,
        watch: Stopwatch,
    ) -> Training:
        """Tokenizer and report from the merges of all stages; the last one's pattern is written."""
        tokens = stages[-1].tokens
        images = [byte_level.to_image(token) for token in tokens]
        merges = [
            (images[left], images[right])
            for stage in stages
            for left, right, _ in stage.merges.tolist()
        ]
        tokenizer = Tokenizer(
            model=BpeModel(
                vocab={image: token_id for token_id, image in enumerate(images)},
                merges=tuple(merges),
            ),
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
            recipe=self.recipe,
            vocab_size=tokenizer.vocab_size,
            merges=len(merges),
            stage1_merges=len(stages[0].merges),
            stage2_merges=len(merges) - len(stages[0].merges),
            superwords=sum(map(is_superword, tokens)),
            training_tokens=stages[-1].training_tokens + reader.n_special,
            training_bytes=reader.n_bytes,
            training_documents=reader.n_documents,
            stopped_because=stages[-1].stopped.name.lower(),
            corpus_fingerprint=reader.fingerprint,
            config_hash=config_hash(config_of(self)),
            phases=tuple(watch.phases),
        )
        return Training(tokenizer, report)


def in_phase(progress: Progress | None, phase: str) -> Callable[[int, int | None], None] | None:
    """`progress` with its first argument filled in."""
    if progress is None:
        return None
    return lambda done, total: progress(phase, done, total)


def forbidden(reader: CorpusReader) -> set[bytes]:
    """What no merge may make: a special token must not come out of ordinary text."""
    return {content.encode() for content in reader.special_tokens}


def is_superword(token: bytes) -> bool:
    """Whether a token holds text on both sides of a space."""
    return b" " in token.strip()
