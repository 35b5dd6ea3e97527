"""Counting the words of Arrow record batches: what one task of an engine does.

Batches of text come in; batches of (language, word, count) go out, each word once per task and
language. The engine adds up the counts of all tasks. `CorpusReader` cuts the text, as for
`vocabshift count`, so the sums are equal.

Documents, bytes and bad rows must be summed too, and exactly once, even if the engine runs a task
twice. They travel among the words, as words that no text holds: their first byte, STATISTIC or
BAD_ROW, occurs nowhere in UTF-8.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.engines.rows import BatchCorpus, Kept, RowOptions
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_shards import BAD_ROW, BLOCK_BYTES, STATISTIC, word_array
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.records import check_installed

GroupBlock = tuple[int, bytes, NDArray[np.int64], NDArray[np.uint64]]
"""Group, concatenated words, their (exclusive) ends, and how often each occurs."""

_SHARE_OF_BAD_ROWS = 8  # of the memory: one part of so many


@dataclass(frozen=True)
class CountPieces(RowOptions):
    """Counts the pre-tokens of Arrow record batches; can be pickled.

    Called with an iterator of record batches, it returns an iterator of record batches with the
    columns `language` (string, null without one), `word` (binary) and `count` (uint64). Words
    that begin with STATISTIC or BAD_ROW are no words (see the module). The text may be a column of
    strings, or of binary values in UTF-8.

    CorpusError for a missing column, and for a bad row unless `bad_rows` is "keep"; ValueError,
    when it is made, for an unknown pattern or normalizer.
    """

    pattern: str | Pattern = "o200k"
    """Name of a pattern, or a regex."""
    normalizer: str | None = None
    """Steps applied to the text first, such as "nfc"; None: none."""
    special_tokens: tuple[str, ...] = ()
    """Texts that no word may overlap."""
    memory_bytes: int = 256 << 20
    """Budget for the words of a task, and an eighth of it for bad rows; what is beyond it goes to
    `spill_folder`. 0: no limit."""
    spill_folder: str | None = None
    """None: the folder for temporary files."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_installed("pyarrow", "counting Arrow record batches")
        if isinstance(self.special_tokens, str):
            raise TypeError("special_tokens is a str; give a tuple")
        self.reader(BatchCorpus((), self))  # refuses here what no task could use

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count the words of the batches; they come once the last batch was read."""
        folder = self.spill_folder or tempfile.gettempdir()
        bad = _BadRows(-(-self.memory_bytes // _SHARE_OF_BAD_ROWS), folder)  # 0: no limit
        corpus = BatchCorpus(batches, self, bad.add)
        reader = self.reader(corpus)
        counter = _core.WordCounter(reader.scanner, 1, self.memory_bytes, folder)
        for block in reader.read():
            counter.add(block.data, block.starts, block.ends, block.group)
        yield from bad.batches()
        for group, data, ends, counts in sorted_blocks(counter):
            yield counted_batch(reader.groups[group].language, data, ends, counts)
        for about in reader.groups:
            figures = {
                b"documents": about.n_documents,
                b"bytes": about.n_bytes,
                b"special": about.n_special,
            }
            yield _marked(about.language, STATISTIC, figures)
        for language, nulls in corpus.nulls.items():
            yield _marked(language, STATISTIC, {b"nulls": nulls})
        high, low = divmod(int(reader.fingerprint, 16), 1 << 32)
        yield _marked(None, STATISTIC, {b"high": high, b"low": low})

    def reader(self, corpus: Corpus) -> CorpusReader:
        """The reader of a corpus with these settings."""
        pattern, special = get_pattern(self.pattern), tuple(self.special_tokens)
        return CorpusReader(corpus, pattern, self.normalizer, special, by_language=True)


def sorted_blocks(counter: _core.WordCounter) -> Iterator[GroupBlock]:
    """All words of a counter, sorted within each group, a few blocks ahead.

    The core calls a function for each block; a thread turns these calls into an iterator, so that
    no more than a few blocks are in memory.
    """
    made: Queue[GroupBlock | BaseException | None] = Queue(maxsize=2)
    is_closed = False

    def visit(*block: Any) -> None:
        if is_closed:
            raise InterruptedError("nobody wants the rest")
        made.put(block)

    def run() -> None:
        try:
            counter.sorted_blocks(visit, BLOCK_BYTES)
            made.put(None)
        except BaseException as error:  # raised again where the words are used
            made.put(error)

    thread = Thread(target=run, name="vocabshift-sorted-blocks", daemon=True)
    thread.start()
    try:
        while (block := made.get()) is not None:
            if isinstance(block, BaseException):
                raise block
            yield block
    finally:
        is_closed = True
        while thread.is_alive():  # it may wait for room
            try:
                made.get(timeout=0.05)
            except Empty:
                continue
        thread.join()


class _BadRows:
    """Rows that are no text: they may be many, so they are counted as words are."""

    def __init__(self, memory_bytes: int, folder: str) -> None:
        self._counter = _core.WordCounter(_core.PreTokenizer([]), 1, memory_bytes, folder)
        self._languages: list[str | None] = []

    def add(self, rows: Kept) -> None:
        by_language: dict[str | None, dict[bytes, int]] = {}
        for (language, reason, row), count in rows.items():
            by_language.setdefault(language, {})[reason.encode() + b"\0" + row] = count
        for language, figures in by_language.items():
            if language not in self._languages:
                self._languages.append(language)
            words = _concatenated(BAD_ROW, figures)
            self._counter.add_words(*words, self._languages.index(language))

    def batches(self) -> Iterator[Any]:
        for group, data, ends, counts in sorted_blocks(self._counter):
            yield counted_batch(self._languages[group], data, ends, counts)


def _marked(language: str | None, mark: bytes, figures: Mapping[bytes, int]) -> Any:
    return counted_batch(language, *_concatenated(mark, figures))


def _concatenated(
    mark: bytes, figures: Mapping[bytes, int]
) -> tuple[bytes, NDArray[np.int64], NDArray[np.uint64]]:
    words = [mark + name for name in figures]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return b"".join(words), ends, np.array([*figures.values()], np.uint64)


def counted_batch(
    language: str | None,
    data: bytes,
    ends: NDArray[np.int64],
    counts: NDArray[np.uint64],
    column: str = "word",
) -> Any:
    """One block of words as a record batch."""
    import pyarrow as pa

    words = word_array(data, ends)
    languages = pa.repeat(pa.scalar(language, pa.string()), len(ends))
    return pa.record_batch(
        [languages, words, pa.array(counts, pa.uint64())], names=["language", column, "count"]
    )
