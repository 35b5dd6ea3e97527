"""BoundlessBPE: words and superwords learned in one run (IST's one-stage baseline, "IST-BR").

A *supermerge* joins whole neighbouring words, each of which has become a single token and holds a
letter or mark. It competes by count with merges inside words. Words do not depend on supermerges,
so they are learned first, and then the run is replayed with both kinds: see the core's
boundless_loop.h. That file also states how ties are broken (our rule covers both kinds; the
authors' code prefers unlocked pairs and then compares bytes). Words are neighbours inside one
pre-token of `stage2_pre_tokenizer`, as in IST: no superword spans a sentence end, digits or a line
break.

The exported tokenizer is not exactly BoundlessBPE. BoundlessBPE's own encoder merges each word
alone and then joins words that are one token. A merge list in `tokenizer.json` cannot express that
"whole word" condition, so by rank `" of" + " the"` also fires inside " of there" if " there" is
" the" + "re". We write all word merges, then the supermerges in order. Superwords that this list
does not rebuild from their own bytes are left out (none, with the named patterns). The difference
is measured on the whole corpus: the report holds `boundless_tokens`, `training_tokens` (those of
the exported file, as `tokenizers` counts them), and the share of documents that the two segment
differently. Both decode every text exactly.

Source: Schmidt et al., "Boundless Byte Pair Encoding", arXiv 2504.00178.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.progress import PhaseProgress
from vocabshift.text.counting import CorpusReader, PreparedBlock
from vocabshift.text.patterns import Pattern, get_pattern, splitter
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.splits import Split
from vocabshift.tokenizer.model import compile_merges
from vocabshift.trainers.base import (
    RunContext,
    Source,
    Training,
    TrainingReport,
    check_positive,
    detailed,
)
from vocabshift.trainers.byte_level import ByteLevelTrainer, forbidden
from vocabshift.trainers.stages import Stage, WordWeight, learn_words

_LETTER_OR_MARK = 1 | 2 | 4 | 8  # bits of _core.char_class


@dataclass(frozen=True, slots=True)
class BoundlessReport(TrainingReport):
    """What a run did; `stage1_merges` are those inside words, `stage2_merges` supermerges."""

    boundless_tokens: int  # of all documents, unweighted, as BoundlessBPE itself segments them
    documents_differing: float  # share that the exported tokenizer segments differently, 0-1
    left_out: int  # superwords that the exported merges could not rebuild


def facts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts shown to users: how far the export differs from BoundlessBPE itself."""
    return {
        "tokens by BoundlessBPE itself": result["boundless_tokens"],
        "documents that differ": f"{result['documents_differing']:.1%}",
    }


@dataclass(frozen=True)
class BoundlessMerges:
    """What one run learned, before it is made a tokenizer."""

    reader: CorpusReader  # of the words, as read
    cut: CutReader
    words: Stage  # word merges alone, up to the whole vocabulary
    may_join: list[bool]  # by id in `words`
    joined: _core.BoundlessTrained  # both kinds, in the order in which they were taken


@dataclass(frozen=True, kw_only=True)
class BoundlessTrainer(ByteLevelTrainer):
    """One stage: merges inside words, and supermerges of whole words, by count.

    `pre_tokenizer` cuts the words, inside the pre-tokens of `stage2_pre_tokenizer`. The vocabulary
    is smaller than `vocab_size` by the report's `left_out`.
    """

    stage2_pre_tokenizer: str | Pattern = "ist-stage2"
    """Pattern that no superword leaves, and that the exported tokenizer carries."""
    max_words: int | None = None
    """Most words, divided by spaces, that a superword may hold."""
    merge_pattern: Annotated[str | None, "REGEX"] = None
    r"""Regex that a word must match somewhere to be joined; None: it holds a letter or mark. The
    authors' own is ``\p{L}``."""

    recipe: ClassVar[str] = "boundless"

    def __post_init__(self) -> None:
        super().__post_init__()
        get_pattern(self.stage2_pre_tokenizer)
        check_positive("max_words", self.max_words)
        self._refuse_grapheme_safe("by count alone")
        try:
            self._may_join()
        except Exception as error:  # tokenizers raises plain Exception for a bad regex
            message = f"merge_pattern {self.merge_pattern!r} is not a regex: {error}"
            raise ValueError(message) from None

    def run(self, corpus: Source, context: RunContext | None = None) -> Training:
        """Train on `corpus`, which is read four times, and return the tokenizer with a report."""
        context = context or RunContext()
        learned = self.learn(corpus, context)
        reader, stopped = learned.reader, learned.joined.stopped.name.lower()
        export = _Export(learned.joined, self.vocab_size)
        with context.watch.phase("measure"):
            measured = export.measure(learned, context.threads, context.in_phase("measure"))
        word_merges = Stage.of_merges(export.tokens, export.word_merges, stopped)
        stages = [
            replace(
                word_merges,
                dropped_words=learned.words.dropped_words,
                dropped_occurrences=learned.words.dropped_occurrences,
            ),
            Stage.of_merges(export.tokens, export.supermerges, stopped, measured.exported_tokens),
        ]
        training = self._finish(
            stages, replace(reader, pattern=get_pattern(self.stage2_pre_tokenizer)), context
        )
        report = detailed(
            training.report,
            BoundlessReport,
            boundless_tokens=measured.boundless_tokens + reader.n_special,
            documents_differing=measured.documents_differing / max(measured.documents, 1),
            left_out=len(export.left_out),
        )
        return replace(training, report=report)

    def learn(self, corpus: Source, context: RunContext) -> BoundlessMerges:
        """Learn both kinds of merges."""
        pieces, words = get_pattern(self.stage2_pre_tokenizer), get_pattern(self.pre_tokenizer)
        reader = self._text_reader(corpus, (*pieces, *words))
        rule = self._word_rule(reader, self.vocab_size)
        learned = learn_words(reader, rule, WordWeight(), context)
        cut = CutReader(reader, pieces, words)
        tokens = list(learned.tokens)
        may_join = list(map(self._may_join(), tokens))
        stage = _core.BoundlessStage(
            tokens,
            learned.merges,
            learned.counts,
            may_join,
            cut.pieces,
            cut.words,
            reader.fixed_point_weights(),
            self.vocab_size,
            reader.min_count(self.min_frequency),
            learned.training_tokens,
            context.threads,
        )
        with context.watch.phase("borders"):
            for block, *ends in cut.read(context.in_phase("borders")):
                stage.count_borders(block.data, block.starts, block.ends, block.group, *ends)
        with context.watch.phase("runs"):
            for block, *ends in cut.read(context.in_phase("runs")):
                stage.count_runs(block.data, block.starts, block.ends, block.group, *ends)
        with context.watch.phase("merge"):
            joined = stage.train(
                self.max_token_bytes or 0,
                self.max_words or 0,
                forbidden(reader),
                context.in_phase("merge"),
            )
        return BoundlessMerges(reader, cut, learned, may_join, joined)

    def _may_join(self) -> Callable[[bytes], bool]:
        """Return the test of whether a word that is this token may be part of a superword."""
        if self.merge_pattern is None:

            def matches(text: str) -> bool:
                return any(_core.char_class(ord(c)) & _LETTER_OR_MARK for c in text)
        else:
            without_matches = splitter((Split(self.merge_pattern, "Removed"),))

            def matches(text: str) -> bool:
                return "".join(without_matches(text)) != text

        def may_join(token: bytes) -> bool:
            try:
                return matches(token.decode())
            except UnicodeDecodeError:
                return False  # never a whole word

        return may_join


class CutReader:
    """Reads a corpus cut into pieces and words: by the core where it has scanners for both."""

    def __init__(self, reader: CorpusReader, pieces: Pattern, words: Pattern) -> None:
        whole = _core.PreTokenizer([])
        scanners = compile_pattern(pieces), compile_pattern(words)
        self._is_scanned = None not in scanners
        self._split_pieces, self._split_words = splitter(pieces), splitter(words)
        self.pieces = (scanners[0] if self._is_scanned else None) or whole
        self.words = (scanners[1] if self._is_scanned else None) or whole
        self.reader = reader.again(())

    def read(
        self, progress: PhaseProgress | None
    ) -> Iterator[tuple[PreparedBlock, NDArray[np.int64] | None, NDArray[np.int64] | None]]:
        """Yield blocks, and the ends of their pre-tokens and words if the core cannot find them."""
        for block in self.reader.read(progress):
            yield (block, None, None) if self._is_scanned else self._cut(block)

    def _cut(
        self, block: PreparedBlock
    ) -> tuple[PreparedBlock, NDArray[np.int64], NDArray[np.int64]]:
        words: list[bytes] = []
        piece_words: list[int] = [0]  # words up to the end of each piece
        document_words: list[int] = [0]
        for start, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True):
            for piece in self._split_pieces(str(block.data[start:end], "utf-8")):
                words += [word.encode() for word in self._split_words(piece)]
                if len(words) > piece_words[-1]:
                    piece_words.append(len(words))
            document_words.append(len(words))
        ends = np.cumsum([0, *map(len, words)], dtype=np.int64)
        borders = ends[document_words]
        cut = PreparedBlock(b"".join(words), borders[:-1], borders[1:], block.group, block.n_read)
        return cut, ends[piece_words[1:]], ends[1:]


class _Export:
    """The merge list that is written: all word merges, then every supermerge that is in reach."""

    def __init__(self, joined: _core.BoundlessTrained, vocab_size: int) -> None:
        stack = _core.MergeStack(max(vocab_size, 256))
        products = joined.merges[:, 2]
        self._all_tokens = joined.tokens
        for token_id in products[~joined.is_supermerge].tolist():
            stack.push(self._all_tokens[token_id])
        n_words = len(stack.merges)
        in_order = [self._all_tokens[i] for i in products[joined.is_supermerge].tolist()]
        self.left_out = [token for token in in_order if stack.push(token) > 2]
        self.tokens = stack.tokens
        self.word_merges, self.supermerges = stack.merges[:n_words], stack.merges[n_words:]
        self._joined = joined.merges[joined.is_supermerge]

    def measure(
        self,
        learned: BoundlessMerges,
        threads: int,
        progress: PhaseProgress | None,
    ) -> _core.BoundlessSegmentation:
        """Count both segmentations of the whole corpus; superwords left out take the last ids."""
        tokens = [*self.tokens, *self.left_out]
        ids = {token: token_id for token_id, token in enumerate(tokens)}
        joins = dict(zip(learned.words.tokens, learned.may_join, strict=True))
        renumbered = np.array([ids[token] for token in self._all_tokens], dtype=np.uint32)
        measured = _core.BoundlessSegmentation(
            compile_merges(tokens, self.word_merges),
            compile_merges(tokens, np.concatenate([self.word_merges, self.supermerges])),
            renumbered[self._joined].reshape(-1, 3),
            [joins.get(token, False) for token in tokens],
            [len(token) for token in tokens],
            learned.cut.pieces,
            learned.cut.words,
            threads,
        )
        for block, *ends in learned.cut.read(progress):
            measured.add(block.data, block.starts, block.ends, *ends)
        return measured
