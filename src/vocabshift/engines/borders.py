"""The first pass for superwords over text in parts: how often stage-1 tokens are neighbours.

Owns the settings of both passes (`RunPlan`), what one part of the text adds to the sketch
(`SketchBorders`), and the summed sketch (`Borders`). `runs` has the second pass, and
docs/algorithms/superwords.md explains why two are needed.

A sketch has one row with a negative cell: the sum of the other rows, under a key of all settings.
So sums of different settings, or sums from which rows are missing, are noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.engines.rows import BatchCorpus, RowOptions
from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_shards import exact_sum
from vocabshift.text.counting import CorpusReader
from vocabshift.text.documents import read_ahead
from vocabshift.text.normalize import normalizer_spec
from vocabshift.text.patterns import Pattern
from vocabshift.text.weighing import SentenceWeight
from vocabshift.tokenizer.model import compile_merges

_CELLS_PER_SUPERWORD = 512
_LEAST_CELLS, _MOST_CELLS = 1 << 12, 1 << 26
_CELLS = 1 << 20  # of the sketch, for a batch

AGAIN = "sum the rows of all parts of the text, and of one job only"
"""Advice for sums that lack rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RunPlan:
    """What runs are counted under; it can be pickled. `SuperwordTrainer.plan_runs` makes it."""

    tokens: tuple[bytes, ...]  # of stage 1, by id
    merges: NDArray[np.uint32]  # (n, 3): left id, right id, product id
    pattern: Pattern  # of stage 2
    normalizer: str | None
    special_tokens: tuple[str, ...]
    weights: Mapping[str | None, int]  # of an occurrence, by language, fixed point
    terminals: str  # characters that no superword holds
    sentences: SentenceWeight | None  # None: documents weigh by their language alone
    superwords: int  # to be learned
    min_count: int  # weighted: of the rarest pair that may merge

    @property
    def cells(self) -> int:
        """Counters of the sketch, 8 bytes each."""
        wanted = 1 << (self.superwords * _CELLS_PER_SUPERWORD - 1).bit_length()
        return min(max(wanted, _LEAST_CELLS), _MOST_CELLS)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All of it that changes what runs there are, as plain JSON values."""
        stage1 = hashlib.sha256()
        for token in self.tokens:
            stage1.update(len(token).to_bytes(4, "little") + token)
        stage1.update(np.ascontiguousarray(self.merges, dtype="<u4").tobytes())
        return {
            "stage1": stage1.hexdigest(),
            "stage1_tokens": len(self.tokens),
            "pattern": [asdict(split) for split in self.pattern],
            "normalizer": normalizer_spec(self.normalizer),
            "special_tokens": sorted(self.special_tokens),
            "weights": sorted(map(list, self.weights.items()), key=str),
            "terminals": self.terminals,
            "sentence_weights": None
            if self.sentences is None
            else json.loads(json.dumps(asdict(self.sentences))),
        }

    def key(self, *more: Any) -> bytes:
        """Eight bytes that identify the settings, the size of the sketch, and `more`."""
        text = json.dumps([self.settings, self.cells, *more], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).digest()[:8]

    def read(self, corpus: Corpus) -> CorpusReader:
        """A reader of a corpus under these settings."""
        return CorpusReader(
            corpus, self.pattern, self.normalizer, self.special_tokens, by_language=True
        )

    def group_of(self, language: str | None) -> int:
        """The place of a language among the weights; CorpusError if it has none."""
        languages = list(self.weights)
        if language not in languages:
            raise CorpusError(
                f"the text has the language {language!r}, and the words were counted of "
                f"{', '.join(map(repr, languages))}; count both on the same text"
            )
        return languages.index(language)

    def sentence_weights(self) -> _core.SentenceWeights | None:
        """The core's form of `sentences`."""
        return None if self.sentences is None else self.sentences.to_core()

    def core(self, reader: CorpusReader) -> tuple[_core.Encoder, list[bytes], _core.PreTokenizer]:
        """The first arguments of the core's passes."""
        tokens = list(self.tokens)
        return compile_merges(tokens, self.merges), tokens, reader.scanner


class SketchBorders:
    """Counts the borders between neighbouring stage-1 tokens; can be pickled.

    Calling it with an iterator of record batches of text returns an iterator of batches with the
    columns `cell` (int64) and `count` (uint64): a sketch with one hash, which only overestimates.
    To be summed by `cell`. Memory: 8 bytes for each of `plan.cells`.

    rows: the columns of text and language; rows that are no text are left out, or an error. They
    must be the rows of which the words were counted. CorpusError for a missing column.
    """

    def __init__(self, plan: RunPlan, rows: RowOptions | None = None) -> None:
        self.plan = plan
        self.rows = rows or RowOptions()

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count the borders of the batches; the result comes after the last one."""
        return self.of(self.plan.read(BatchCorpus(batches, self.rows)))

    def of(
        self, reader: CorpusReader, *, threads: int = 1, progress: PhaseProgress | None = None
    ) -> Iterator[Any]:
        """The same for a reader that `plan.read` made."""
        import pyarrow as pa

        plan = self.plan
        core = _core.BorderPass(
            *plan.core(reader),
            list(plan.weights.values()),
            plan.cells,
            threads,
            plan.sentence_weights(),
        )
        for block in read_ahead(reader.read(progress), threads=threads):
            group = plan.group_of(reader.groups[block.group].language)
            core.add(block.data, block.starts, block.ends, group)
        sketch, total = core.counts, 0
        for at in range(0, plan.cells, _CELLS):
            counts = sketch[at : at + _CELLS]
            cells = np.flatnonzero(counts)
            counts, cells = counts[cells], cells + at
            total += exact_sum(counts)
            if at + _CELLS >= plan.cells:
                cells = np.append(cells, -1 - _number(plan.key()))
                counts = np.append(counts, np.uint64(total))
            columns = [pa.array(cells, pa.int64()), pa.array(counts, pa.uint64())]
            yield pa.record_batch(columns, names=["cell", "count"])


@dataclass(frozen=True, eq=False)
class Borders:
    """The summed sketch of all text."""

    plan: RunPlan
    counts: NDArray[np.uint64]  # (plan.cells,) weighted

    @classmethod
    def sum(cls, plan: RunPlan, batches: Iterable[Any]) -> Borders:
        """Sum the rows of `SketchBorders`, in any order and summed or not.

        CorpusError if rows are missing, damaged, or of another plan.
        """
        counts = np.zeros(plan.cells, np.uint64)
        mark = -1 - _number(plan.key())
        found = expected = 0
        is_marked = False
        for batch in batches:
            cells = _column(batch, "cell").astype(np.int64)
            of_cells = _column(batch, "count").astype(np.uint64)
            is_mark = cells < 0
            is_marked |= bool(is_mark.any())
            expected += exact_sum(of_cells[is_mark])
            if (cells[is_mark] != mark).any() or (cells >= plan.cells).any():
                raise CorpusError(
                    "the sketch of borders is of another stage 1, pattern, normalizer or weights; "
                    "sketch the borders again under the plan of these words"
                )
            cells, of_cells = cells[~is_mark], of_cells[~is_mark]
            found += exact_sum(of_cells)
            np.add.at(counts, cells, of_cells)
        if not is_marked or found != expected:
            raise CorpusError(f"rows of the sketch of borders are missing or damaged; {AGAIN}")
        if found >= 1 << 64:
            raise CorpusError("weighted borders beyond 2^64; make the weights less different")
        return cls(plan, counts)

    def guess_bound(self) -> int:
        """The bound to try first: training mostly ends above it."""
        guess = _core.guess_bound(self.counts, self.plan.superwords)
        return max(guess, self.plan.min_count, 1)


def _number(key: bytes) -> int:
    """A key as a number below 2^62."""
    return int.from_bytes(key, "little") >> 2


def _column(batch: Any, name: str) -> NDArray[Any]:
    values: NDArray[Any] = batch.column(name).to_numpy(zero_copy_only=False)
    return values
