"""The second pass for superwords over text in parts: the runs of tokens between frequent borders.

Owns what one part of the text counts (`CountRuns`) and the sums, which become a folder (`RunSums`).

Figures on the text travel among the runs, because only rows are summed by every engine, and summed
once: a row whose `run` is `_MARK_BYTES` long is a key of all settings and the name of a figure. So
sums of different settings, or sums from which rows are missing, are noticed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift import _core
from vocabshift.engines.borders import AGAIN, Borders, RunPlan
from vocabshift.engines.rows import BatchCorpus, RowOptions
from vocabshift.engines.words import counted_batch, sorted_blocks
from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress
from vocabshift.text.count_shards import exact_sum, flat_words
from vocabshift.text.counting import CorpusReader
from vocabshift.text.documents import read_ahead
from vocabshift.text.run_folder import write_runs

MEMORY_BYTES = 256 << 20
"""What the runs of a task may take, roughly, before they are handed on."""

_TOKENS, _BYTES, _SUM = b"tok", b"byt", b"sum"
_MARK_BYTES = 8 + 3  # a key and the name of a figure: never as long as a run, nor as its weight


class CountRuns:
    """Counts the runs of stage-1 tokens between borders that are not below a bound; can be pickled.

    Calling it with an iterator of record batches of text returns an iterator of batches with the
    columns `language` (string, null without a language), `run` (binary) and `count` (uint64). To
    be summed by language and run. Memory: about `memory_bytes`, whatever the text; what is beyond
    it is handed on, so that a run may come several times.

    bound: weighted, in the fixed point of `plan.weights`. rows: as for `SketchBorders`.
    """

    def __init__(
        self,
        plan: RunPlan,
        borders: Borders,
        bound: int,
        rows: RowOptions | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self.plan = plan
        self.bound = bound
        self.rows = rows or RowOptions()
        self.memory_bytes = memory_bytes
        self.frequent = np.packbits(borders.counts >= bound, bitorder="little").tobytes()
        """A bit for each cell of the sketch: all that a task needs of it."""
        digest = hashlib.sha256(self.frequent).hexdigest()
        self.key = plan.key(bound, digest)
        """Identifies the plan, the bound and the sketch."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count the runs of the batches."""
        return self.of(self.plan.read(BatchCorpus(batches, self.rows)))

    def of(
        self, reader: CorpusReader, *, threads: int = 1, progress: PhaseProgress | None = None
    ) -> Iterator[Any]:
        """The same for a reader that `plan.read` made."""
        plan = self.plan
        core = _core.RunPass(
            *plan.core(reader),
            self.frequent,
            _core.MergeRule(terminals=plan.terminals),
            threads,
            plan.sentence_weights(),
        )
        counter = _core.WordCounter(_core.PreTokenizer([]), threads)
        figures: dict[str | None, dict[bytes, int]] = {}
        for block in read_ahead(reader.read(progress), threads=threads):
            language = reader.groups[block.group].language
            plan.group_of(language)  # refuses an unknown one
            own = figures.setdefault(language, {_TOKENS: 0, _BYTES: 0, _SUM: 0})
            before = core.tokens
            core.add(block.data, block.starts, block.ends, counter, block.group)
            own[_TOKENS] += core.tokens - before
            own[_BYTES] += int((block.ends - block.starts).sum())
            if counter.memory_bytes > self.memory_bytes:
                yield from self._rows(counter, reader, figures)
                counter = _core.WordCounter(_core.PreTokenizer([]), threads)
        yield from self._rows(counter, reader, figures)
        for language, own in figures.items():
            names = b"".join(self.key + name for name in own)
            ends = np.arange(1, len(own) + 1, dtype=np.int64) * _MARK_BYTES
            values = np.array([*own.values()], dtype=np.uint64)
            yield counted_batch(language, names, ends, values, "run")

    def _rows(
        self,
        counter: _core.WordCounter,
        reader: CorpusReader,
        figures: Mapping[str | None, dict[bytes, int]],
    ) -> Iterator[Any]:
        """The runs counted so far; their counts are added to the figures."""
        for group, data, ends, counts in sorted_blocks(counter):
            language = reader.groups[group].language
            figures[language][_SUM] += exact_sum(counts)
            yield counted_batch(language, data, ends, counts, "run")


class RunSums:
    """Sums the rows of `CountRuns`, in any order and summed or not, and writes them as a folder.

    memory_bytes: budget (0: no limit); what is beyond it goes to `spill_folder`.
    """

    def __init__(
        self, job: CountRuns, *, memory_bytes: int = 0, spill_folder: Path | None = None
    ) -> None:
        self._job = job
        self._languages = list(job.plan.weights)
        folder = tempfile.gettempdir() if spill_folder is None else str(spill_folder)
        self._counter = _core.WordCounter(_core.PreTokenizer([]), 1, memory_bytes, folder)
        self._figures = [{_TOKENS: 0, _BYTES: 0, _SUM: 0} for _ in self._languages]
        self._sums = [0] * len(self._languages)

    def add(self, batch: Any) -> None:
        """Add a record batch; CorpusError for rows of another job."""
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = batch.column("language").cast(pa.string())
        for label in pc.unique(labels).to_pylist():
            group = self._job.plan.group_of(label)
            is_own = pc.is_null(labels) if label is None else pc.equal(labels, label)
            runs = batch.column("run").filter(is_own)
            counts = batch.column("count").filter(is_own)
            is_mark = pc.equal(pc.binary_length(runs), _MARK_BYTES)
            for name, count in zip(
                runs.filter(is_mark).to_pylist(), counts.filter(is_mark).to_pylist(), strict=True
            ):
                if name[:8] != self._job.key or name[8:] not in self._figures[group]:
                    raise CorpusError(
                        "the counted runs are of another stage 1, sketch or bound; sum the rows of "
                        "one job only"
                    )
                self._figures[group][name[8:]] += count
            is_run = pc.invert(is_mark)
            data, ends = flat_words(runs.filter(is_run))
            own = counts.filter(is_run).to_numpy(zero_copy_only=False).astype(np.uint64)
            self._sums[group] += exact_sum(own)
            self._counter.add_words(data, ends, own, group)

    def write(self, folder: Path) -> None:
        """Write the sums into an existing folder (`RunFolder`); CorpusError if rows are missing."""
        if self._sums != [figures[_SUM] for figures in self._figures]:
            raise CorpusError(f"rows of the counted runs are missing or damaged; {AGAIN}")
        read = [
            (language, figures[_TOKENS], figures[_BYTES])
            for language, figures in zip(self._languages, self._figures, strict=True)
        ]
        job = self._job
        write_runs(
            self._counter,
            read,
            job.plan.settings,
            folder,
            bound=job.bound,
            borders=job.key.hex(),
        )
