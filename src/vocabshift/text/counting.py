"""Readers: they feed the core from a corpus or from a folder of counts.

Owns how text is normalized and cut before the core sees it (by the core, or by `tokenizers`).
Both readers have the same methods. Counted words are used unchanged, or cut by a further pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress
from vocabshift.text import weighing
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder, count_words_within
from vocabshift.text.documents import Documents, pack, read_ahead
from vocabshift.text.normalize import normalizer_function
from vocabshift.text.patterns import Pattern, splitter
from vocabshift.text.scanners import compile_pattern
from vocabshift.text.weighing import Group, WeightedText, check_sampling_alpha


@dataclass(frozen=True, slots=True)
class PreparedBlock:
    """A block of documents that the core can read directly."""

    data: bytes | memoryview
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    group: int  # index into CorpusReader.groups
    n_read: int  # bytes of the corpus up to the end of this block


@dataclass
class CorpusReader(WeightedText):
    """Reads a corpus for one pattern and normalizer; can be read again and again."""

    corpus: Corpus
    pattern: Pattern
    normalizer: str | None = None
    special_tokens: tuple[str, ...] = ()
    """Cut out of the text first, as the finished tokenizer will do."""
    sampling_alpha: float | None = None
    """Exponent of temperature sampling: a language with share p of the (weighted) bytes counts in
    proportion to p ** alpha. None: no sampling."""
    by_language: bool = False  # one group per language even where weights are equal
    language_weights: Mapping[str | None, float] | None = None
    groups: list[Group] = field(default_factory=list)  # in order of appearance
    language_bytes: dict[str | None, int] = field(default_factory=dict)
    n_special: int = 0  # special tokens found in the text
    fingerprint: str = ""  # of the text, labels and weights, as read last

    is_counted: ClassVar[bool] = False
    """Whether `add_to` passes pre-tokens with counts."""

    def __post_init__(self) -> None:
        check_sampling_alpha(self.sampling_alpha, self.corpus.languages)
        if "" in self.special_tokens:
            raise ValueError("a special token is empty; it would cut text between all characters")
        self.normalize = normalizer_function(self.normalizer)
        compiled = compile_pattern(self.pattern)
        self.split = None if compiled is not None else splitter(self.pattern)
        # Of tokens that begin at the same place, the longest wins.
        contents = sorted(self.special_tokens, key=len, reverse=True)
        joined = "|".join(map(re.escape, contents))
        self._special = re.compile(joined) if contents else None
        self._special_bytes = re.compile(joined.encode()) if contents else None
        self.scanner = compiled or _core.PreTokenizer([])

    def again(self, pattern: Pattern) -> CorpusReader:
        """A reader of the same corpus with another pattern; the text must not have changed."""
        reader = CorpusReader(
            self.corpus,
            pattern,
            self.normalizer,
            self.special_tokens,
            self.sampling_alpha,
            self.by_language,
            self.language_weights,
        )
        reader.restore(self.state())
        return reader

    def read(
        self, progress: PhaseProgress | None = None, *, threads: int = 1
    ) -> Iterator[PreparedBlock]:
        """All blocks. Raises CorpusError at the end if a language had no text, or if the text has
        changed since the last pass."""
        before = self.fingerprint
        total = self.corpus.n_bytes_hint
        state = done = 0
        self.groups = [
            replace(group, n_bytes=0, n_documents=0, n_special=0) for group in self.groups
        ]
        self.language_bytes = {}
        self.n_special = 0
        for documents in self.corpus.batches(threads=threads):
            seed = weighing.fingerprint_seed(documents.language, documents.weight)
            spans = documents.starts, documents.ends
            state += _core.fingerprint(documents.data, *spans, seed, threads)
            done += documents.n_bytes
            yield from self._prepare(documents, done)
            if progress is not None:
                progress(done, total)
        silent = [label for label in self.corpus.languages if label not in self.language_bytes]
        if silent:
            raise CorpusError(
                f"no text in {', '.join(map(repr, silent))}: a tokenizer cannot learn a language "
                "that it does not see; give files that are not empty, or leave the label out"
            )
        self.fingerprint = weighing.format_fingerprint(state)
        if before and before != self.fingerprint:
            raise CorpusError(
                "the corpus changed between two passes over it; train again when it is at rest"
            )

    def count_words(
        self,
        *,
        threads: int = 1,
        progress: PhaseProgress | None = None,
        memory_bytes: int = 0,
        spill_folder: Path | None = None,
    ) -> _core.WordCounter:
        """Count the words of the pattern, group by group; ready for training.

        With a memory budget (0: none), words beyond it are spilled to `spill_folder`.
        """
        folder = "." if spill_folder is None else str(spill_folder)
        counter = _core.WordCounter(self.scanner, threads, memory_bytes, folder)
        for block in self._ahead(threads, progress):
            counter.add(block.data, block.starts, block.ends, block.group, is_checked=True)
        return counter

    def add_to(
        self,
        stage: _core.SuperwordStage,
        *,
        threads: int = 1,
        progress: PhaseProgress | None = None,
    ) -> None:
        """Pass all documents to a stage with this reader's scanner and the same thread count."""
        for block in self._ahead(threads, progress):
            stage.add(block.data, block.starts, block.ends, block.group)

    def _ahead(self, threads: int, progress: PhaseProgress | None) -> Iterator[PreparedBlock]:
        """All blocks, read ahead; progress is reported once a block has been used."""
        total = self.corpus.n_bytes_hint
        for block in read_ahead(self.read(threads=threads), threads=threads):
            yield block
            if progress is not None:
                progress(block.n_read, total)

    def _prepare(self, documents: Documents, n_read: int) -> Iterator[PreparedBlock]:
        group = self._group_of(documents)
        is_plain = self.normalize is None and self.split is None
        if is_plain and not self._has_special(documents.data):
            yield PreparedBlock(documents.data, documents.starts, documents.ends, group, n_read)
            return
        before = self.n_special
        for block in pack(self._pre_tokens(documents), documents.source):
            yield PreparedBlock(block.data, block.starts, block.ends, group, n_read)
        self.groups[group].n_special += self.n_special - before

    def _group_of(self, documents: Documents) -> int:
        is_weighed = self.sampling_alpha is not None or self.language_weights is not None
        is_apart = self.by_language or is_weighed
        key = (documents.language if is_apart else None, documents.weight)
        keys = [(group.language, group.weight) for group in self.groups]
        if key not in keys:
            keys.append(key)
            self.groups.append(Group(*key))
        index = keys.index(key)
        group = self.groups[index]
        group.n_bytes += documents.n_bytes
        group.n_documents += len(documents)
        label = documents.language
        self.language_bytes[label] = self.language_bytes.get(label, 0) + documents.n_bytes
        return index

    def _has_special(self, data: bytes | memoryview) -> bool:
        """Whether a block contains a special token."""
        return self._special_bytes is not None and bool(self._special_bytes.search(data))

    def _pre_tokens(self, documents: Documents) -> Iterator[bytes]:
        """Text between special tokens, normalized, and cut if the core has no scanner for it."""
        for text in documents.texts():
            parts = [text] if self._special is None else self._special.split(text)
            self.n_special += len(parts) - 1
            for part in parts:
                normalized = part if self.normalize is None else self.normalize(part)
                if self.split is None:
                    yield normalized.encode()
                else:
                    for pre_token in self.split(normalized):
                        yield pre_token.encode()


@dataclass
class CountReader(WeightedText):
    """Reads a folder of counts as training reads a corpus."""

    folder: CountFolder
    words: Pattern = ()  # cuts the counted pre-tokens into words; empty: they are the words
    sampling_alpha: float | None = None
    groups: list[Group] = field(default_factory=list)
    language_bytes: dict[str | None, int] = field(default_factory=dict)
    n_special: int = 0
    fingerprint: str = ""
    pieces: Pattern | None = None  # of the pre-tokens that runs stand for; None: words are read

    is_counted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        languages = [group.language for group in self.folder.groups if group.language is not None]
        check_sampling_alpha(self.sampling_alpha, languages)
        self.scanner = _core.PreTokenizer([])  # already cut
        self.restore(self.folder.reader_state())

    @property
    def pattern(self) -> Pattern:
        """The whole pattern: that of the runs; or the folder's, then the one for words."""
        return (*self.folder.pattern, *self.words) if self.pieces is None else self.pieces

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The special tokens that were cut out of the text."""
        return self.folder.special_tokens

    def again(self, pattern: Pattern) -> CountReader:
        """A reader of the pre-tokens alone, which must have been counted under `pattern`."""
        self.folder.require(pattern, self.folder.normalizer, self.folder.special_tokens)
        reader = CountReader(self.folder, (), self.sampling_alpha)
        reader.language_weights = self.language_weights
        return reader

    def count_words(
        self,
        *,
        threads: int = 1,
        progress: PhaseProgress | None = None,
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
            counter = count_words_within(
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
        self,
        stage: _core.SuperwordStage,
        *,
        threads: int = 1,
        progress: PhaseProgress | None = None,
    ) -> None:
        """Pass all pre-tokens, with their counts, to a stage for counted documents."""
        for group, about in enumerate(self.groups):
            done = 0
            for data, ends, counts in read_ahead(self.folder.read(group), threads=threads):
                starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
                stage.add(data, starts, ends, group, counts)
                done += len(data)
                if progress is not None:
                    progress(done, about.n_bytes)
