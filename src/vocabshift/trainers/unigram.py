"""Unigram language model (Kudo 2018) with byte fallback, as the Indic study trains it.

SentencePiece learns the pieces (section 5 and Table 10 of the study: split by script, number and
whitespace) from counted words, so weights and temperature add no work (docs/algorithms/unigram.md).
Owns the options, the call, how words are counted, and the report.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.progress import Progress
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.normalize import normalizer_spec
from vocabshift.text.patterns import get_pattern
from vocabshift.tokenizer.added_tokens import AddedToken, check_special_tokens
from vocabshift.tokenizer.unigram import FIXED_PIECES, UNKNOWN, Scored, unigram_tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer
from vocabshift.trainers.base import (
    PlainTraining,
    RunContext,
    Source,
    TrainingReport,
    check_positive,
    check_vocab_size,
    run_figures,
)

_THREADS = 16
"""SentencePiece adds up parts of each thread: this number, and not the machine's, is part of what
is learned."""


def learn_unigram(
    words: Iterable[tuple[str, int]],
    vocab_size: int,
    *,
    character_coverage: float,
    max_piece_length: int,
    asked: str | None = None,
) -> Scored:
    """Learn pieces from words with their counts.

    There are fewer than `vocab_size` if the words yield no more. The pieces do not depend on the
    machine or the number of threads. Raises ValueError if `vocab_size` has no room for the
    characters; `asked` is the user's request, for the message.
    """
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "words.tsv"
        with table.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\t{count}\n" for word, count in words)
        prefix = str(Path(folder) / "unigram")
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                model_prefix=prefix,
                model_type="unigram",
                vocab_size=vocab_size,
                hard_vocab_limit=False,
                character_coverage=character_coverage,
                max_sentencepiece_length=max_piece_length,
                byte_fallback=True,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                split_by_unicode_script=True,
                split_by_number=True,
                train_extremely_large_corpus=True,
                max_sentence_length=1 << 20,
                shuffle_input_sentence=False,
                num_threads=_THREADS,
                unk_piece=UNKNOWN,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            if "required_chars" in str(error) or "vocab_size" in str(error):
                raise ValueError(
                    f"{asked or f'vocab_size {vocab_size}'} has no room for the characters of the "
                    "text and 256 bytes; give more, or a lower character_coverage"
                ) from None
            raise
        model = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    size = model.get_piece_size()
    return Scored(
        tuple(model.id_to_piece(i) for i in range(size)),
        tuple(model.get_score(i) for i in range(size)),
    )


_WORDS = r"\S+"  # SentencePiece always cuts text into these
_BATCH = 4096  # documents encoded at a time


@dataclass(frozen=True, kw_only=True)
class UnigramTrainer:
    """A Unigram language model over words, bytes where a character has no piece."""

    vocab_size: int
    """Pieces, the 256 bytes and the unknown piece included, special tokens not."""
    character_coverage: Annotated[float, "share"] = 0.9999
    """Share of the text's characters that get a piece; the others are spelled in bytes."""
    max_piece_length: int = 16
    """In characters, the space in front included."""
    normalizer: Annotated[str | None, "STEP[+STEP…]"] = None
    """Steps such as "nfc" or "nfc+nukta", as `vocabshift normalize` takes them; they travel inside
    the tokenizer. None: text is left alone."""
    sampling_alpha: Annotated[float | None, "share"] = None
    """Temperature over the languages of the corpus, in (0, 1]; None: as large as they are."""
    special_tokens: tuple[str, ...] = ()
    """Added after the vocabulary."""

    recipe: ClassVar[str] = "unigram"

    def __post_init__(self) -> None:
        check_vocab_size(self.vocab_size, n_fixed=FIXED_PIECES)
        check_positive("max_piece_length", self.max_piece_length)
        if not 0.9 <= self.character_coverage <= 1:
            raise ValueError(
                f"character_coverage is {self.character_coverage}; give a share from 0.9 to 1"
            )
        normalizer_spec(self.normalizer)
        check_special_tokens(self.special_tokens)
        check_sentencepiece()

    @property
    def read_from(self) -> list[str | Path]:
        """The other files that training reads, apart from the corpus: none."""
        return []

    @property
    def inherited(self) -> set[str]:
        """Tokens that were not learned here: none."""
        return set()

    def train(
        self, corpus: Source, *, threads: int = 1, progress: Progress | None = None
    ) -> UnigramOrWordPieceTokenizer:
        """Train on `corpus` and return the tokenizer; it does not depend on `threads`."""
        return self.run(corpus, RunContext(threads=threads, progress=progress)).tokenizer

    def run(self, corpus: Source, context: RunContext | None = None) -> PlainTraining:
        """Train on `corpus` and return the tokenizer with a report."""
        context = context or RunContext()
        context.refuse_budget(self.recipe)
        reader = word_reader(self, corpus)
        with context.watch.phase("count"):
            counter = reader.count_words(
                threads=context.threads, progress=context.in_phase("count")
            )
        with context.watch.phase("unigram"):
            scored = learn_unigram(
                weighted_words(reader, counter),
                self.vocab_size,
                character_coverage=self.character_coverage,
                max_piece_length=self.max_piece_length,
            )
        return finish(self, scored, reader, corpus, context)


def word_reader(trainer: UnigramTrainer, corpus: Source) -> CorpusReader:
    """Return the corpus as words between whitespace; CorpusError for counts."""
    if not isinstance(corpus, Corpus):
        raise CorpusError(
            f"recipe {trainer.recipe} reads text, not a folder of counts; give --corpus"
        )
    return CorpusReader(
        corpus,
        get_pattern(_WORDS),
        trainer.normalizer,
        tuple(sorted(trainer.special_tokens)),
        trainer.sampling_alpha,
    )


def weighted_words(reader: CorpusReader, counter: _core.WordCounter) -> Iterator[tuple[str, int]]:
    """Yield words with their counts, at least 1 each, in a fixed order, without whitespace."""
    unit = reader.min_count(1)
    # SentencePiece's pieces depend on the order; the core's is that of a hash, and of its threads.
    for word, weighted, _ in sorted(counter.joined_words(reader.fixed_point_weights())):
        text = word.decode()
        if is_word(text):
            yield text, max(1, round(weighted / unit))


def is_word(text: str) -> bool:
    """Return whether SentencePiece may see it; its table of words ends a string at NUL."""
    return not text.isspace() and "\0" not in text


def finish(
    trainer: UnigramTrainer,
    scored: Scored,
    reader: CorpusReader,
    corpus: Source,
    context: RunContext,
) -> PlainTraining:
    """Make tokenizer and report from learned pieces."""
    made = unigram_tokenizer(scored, normalizer=trainer.normalizer, name=trainer.recipe)
    first = made.row_count
    added = tuple(AddedToken(text, first + i) for i, text in enumerate(trainer.special_tokens))
    tokenizer = made.with_added(added) if added else made
    with context.watch.phase("encode"):
        training_tokens = _count_tokens(tokenizer, corpus)
    report = TrainingReport(
        **run_figures(trainer, reader, context),
        vocab_size=tokenizer.vocab_size,
        training_tokens=training_tokens,
        stopped_because=(
            "vocab_size" if tokenizer.vocab_size == trainer.vocab_size else "no_piece_left"
        ),
    )
    return PlainTraining(tokenizer, report, reader.language_bytes)


def check_sentencepiece() -> None:
    """Raise ImportError with advice if SentencePiece is not installed."""
    if find_spec("sentencepiece") is None:
        raise ImportError(
            "Unigram models are learned by SentencePiece, which is not installed; "
            "pip install 'vocabshift[unigram]'"
        )


def _count_tokens(tokenizer: UnigramOrWordPieceTokenizer, corpus: Source) -> int:
    assert isinstance(corpus, Corpus)
    texts = (text for _, text in corpus.texts())
    total = 0
    for head in texts:
        batch = [head, *islice(texts, _BATCH - 1)]
        found = tokenizer.backend.encode_batch_fast(batch, add_special_tokens=False)
        total += sum(map(len, found))
    return total
