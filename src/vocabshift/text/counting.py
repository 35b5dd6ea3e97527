"""From a corpus to what the core trains on: prepared blocks of text, and counted words.

Owns how weights become fixed-point numbers, how text is normalized and cut before the core sees
it (by the core's scanner, or by `tokenizers` for any other pattern), and the corpus fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.documents import Documents, pack
from vocabshift.text.lines import read_ahead
from vocabshift.text.normalize import normalizer_function
from vocabshift.text.patterns import Pattern, compile_pattern, splitter
from vocabshift.text.weighing import Group, Weighed, check_sampling_alpha

Progress = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all, if these are known."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A block whose documents the core can take as they are."""

    data: bytes | memoryview
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    group: int  # index into CorpusReader.groups
    n_read: int  # bytes of the corpus up to the end of what this block is of


@dataclass
class CorpusReader(Weighed):
    """Reads a corpus for one pattern and normalizer; can be read again and again."""

    corpus: Corpus
    pattern: Pattern
    normalizer: str | None = None
    special_tokens: tuple[str, ...] = ()
    """Cut out of the text before anything else, as the finished tokenizer will do."""
    sampling_alpha: float | None = None
    """Languages count as if their texts had been sampled by this temperature: a language with the
    share p of the (weighted) bytes counts in proportion to p ** alpha. None: as they are."""
    by_language: bool = False  # one group a language even where it makes no difference
    language_weights: Mapping[str | None, float] | None = None
    groups: list[Group] = field(default_factory=list)  # in order of appearance
    language_bytes: dict[str | None, int] = field(default_factory=dict)
    n_special: int = 0  # special tokens that stood in the text
    fingerprint: str = ""  # of the text, labels and weights, as read last

    is_counted: ClassVar[bool] = False
    """Whether `add_to` gives pieces with counts."""

    def __post_init__(self) -> None:
        check_sampling_alpha(self.sampling_alpha, self.corpus.languages)
        if "" in self.special_tokens:
            raise ValueError("a special token is empty; it would cut text between all characters")
        self.normalize = normalizer_function(self.normalizer)
        compiled = compile_pattern(self.pattern)
        self.split = None if compiled is not None else splitter(self.pattern)
        # The longest of those that begin at the same place is the token.
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

    def read(self, progress: Progress | None = None) -> Iterator[Prepared]:
        """All blocks; CorpusError at the end where a language turned out to have no text, or where
        the text changed since it was read last."""
        before = self.fingerprint
        total = self.corpus.n_bytes_hint
        state = 0
        self.groups = [
            replace(group, n_bytes=0, n_documents=0, n_special=0) for group in self.groups
        ]
        self.language_bytes = {}
        self.n_special = 0
        done = 0
        for documents in self.corpus.batches():
            label = f"{documents.language}@{documents.weight!r}".encode()
            state = _core.fingerprint(
                documents.data,
                documents.starts,
                documents.ends,
                _core.fingerprint(label, seed=state),
            )
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
        self.fingerprint = f"{state:016x}"
        if before and before != self.fingerprint:
            raise CorpusError(
                "the corpus changed between two passes over it; train again when it is at rest"
            )

    def count_words(
        self,
        *,
        threads: int = 1,
        progress: Progress | None = None,
        memory_bytes: int = 0,
        spill_folder: Path | None = None,
    ) -> _core.WordCounter:
        """Count the words of the pattern, group by group; ready for training.

        With a budget (0: none), words that outgrow it wait on disk in `spill_folder`.
        """
        folder = "." if spill_folder is None else str(spill_folder)
        counter = _core.WordCounter(self.scanner, threads, memory_bytes, folder)
        for block in self._ahead(threads, progress):
            counter.add(block.data, block.starts, block.ends, block.group)
        return counter

    def add_to(
        self, stage: _core.SuperwordStage, *, threads: int = 1, progress: Progress | None = None
    ) -> None:
        """Give all documents to a stage that has this reader's scanner, and as many threads."""
        for block in self._ahead(threads, progress):
            stage.add(block.data, block.starts, block.ends, block.group)

    def _ahead(self, threads: int, progress: Progress | None) -> Iterator[Prepared]:
        """All blocks, read while others are in use; progress is told when they have been used."""
        total = self.corpus.n_bytes_hint
        for block in read_ahead(self.read(), threads=threads):
            yield block
            if progress is not None:
                progress(block.n_read, total)

    def _prepare(self, documents: Documents, n_read: int) -> Iterator[Prepared]:
        group = self._group_of(documents)
        is_plain = self.normalize is None and self.split is None
        if is_plain and not self._has_special(documents.data):
            yield Prepared(documents.data, documents.starts, documents.ends, group, n_read)
            return
        before = self.n_special
        for block in pack(self._pieces(documents), documents.source):
            yield Prepared(block.data, block.starts, block.ends, group, n_read)
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
        """Whether a special token stands in a block."""
        return self._special_bytes is not None and bool(self._special_bytes.search(data))

    def _pieces(self, documents: Documents) -> Iterator[bytes]:
        """Text between special tokens, normalized, cut where the core has no scanner for it."""
        for text in documents.texts():
            parts = [text] if self._special is None else self._special.split(text)
            self.n_special += len(parts) - 1
            for part in parts:
                normalized = part if self.normalize is None else self.normalize(part)
                if self.split is None:
                    yield normalized.encode()
                else:
                    for piece in self.split(normalized):
                        yield piece.encode()
