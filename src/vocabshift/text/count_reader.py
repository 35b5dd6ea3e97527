"""Counted text in place of a corpus: the same face as CorpusReader, over a folder of counts.

Words come from the folder as they are, or cut once more by a further pattern: the word stage of a
two-stage recipe takes its words inside the pieces that were counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from vocabshift import _core
from vocabshift.text.count_folder import CountFolder, count_words_of_pieces
from vocabshift.text.counting import Progress
from vocabshift.text.lines import read_ahead
from vocabshift.text.patterns import Pattern, compile_pattern, splitter
from vocabshift.text.weighing import Group, Weighed, check_sampling_alpha


@dataclass
class CountReader(Weighed):
    """Reads a folder of counts as training reads a corpus."""

    folder: CountFolder
    words: Pattern = ()
    """Pattern that cuts the counted pieces into words; nothing: they are the words."""
    sampling_alpha: float | None = None
    groups: list[Group] = field(default_factory=list)
    language_bytes: dict[str | None, int] = field(default_factory=dict)
    n_special: int = 0
    fingerprint: str = ""

    is_counted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        languages = [group.language for group in self.folder.groups if group.language is not None]
        check_sampling_alpha(self.sampling_alpha, languages)
        self.scanner = _core.PreTokenizer([])  # pieces are cut already
        self.restore(self.folder.reader_state())

    @property
    def pattern(self) -> Pattern:
        """The whole pattern: that of the folder, then that of the words."""
        return (*self.folder.pattern, *self.words)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """Those that were cut out of the text."""
        return self.folder.special_tokens

    def again(self, pattern: Pattern) -> CountReader:
        """A reader of the pieces alone, which must have been counted under `pattern`."""
        self.folder.require(pattern, self.folder.normalizer, self.folder.special_tokens)
        return CountReader(self.folder, (), self.sampling_alpha)

    def count_words(
        self,
        *,
        threads: int = 1,
        progress: Progress | None = None,
        memory_bytes: int = 0,
        spill_folder: Path | None = None,
    ) -> _core.WordCounter:
        """The words with their counts, group by group."""
        spill = "." if spill_folder is None else str(spill_folder)
        inner = compile_pattern(self.words)
        if inner is None:
            counter = _core.WordCounter(self.scanner, 1, memory_bytes, spill)
            self._split_by_regex(counter)
        elif self.words:
            counter = count_words_of_pieces(
                self.folder, inner, threads=threads, memory_bytes=memory_bytes, spill_folder=spill
            )
        else:
            counter = _core.WordCounter(self.scanner, threads, memory_bytes, spill)
            self.folder.load_into(counter)
        if progress is not None:
            progress(self.n_bytes, self.n_bytes)
        return counter

    def _split_by_regex(self, counter: _core.WordCounter) -> None:
        split = splitter(self.words)
        for group in range(len(self.groups)):
            for data, ends, counts in self.folder.read(group):
                begin = 0
                for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
                    words = [word.encode() for word in split(data[begin:end].decode())]
                    counter.add_words(
                        b"".join(words),
                        np.cumsum([len(word) for word in words], dtype=np.int64),
                        np.full(len(words), count, dtype=np.uint64),
                        group,
                    )
                    begin = end

    def add_to(
        self, stage: _core.SuperwordStage, *, threads: int = 1, progress: Progress | None = None
    ) -> None:
        """Give all pieces, with their counts, to a stage for counted documents."""
        for group, about in enumerate(self.groups):
            done = 0
            for data, ends, counts in read_ahead(self.folder.read(group), threads=threads):
                starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
                stage.add(data, starts, ends, group, counts)
                done += len(data)
                if progress is not None:
                    progress(done, about.n_bytes)
