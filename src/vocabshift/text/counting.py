"""From a corpus to what the core trains on: prepared blocks of text, and counted words.

Owns how weights become fixed-point numbers, how text is normalized and cut before the core sees
it (by the core's scanner, or by `tokenizers` for any other pattern), and the corpus fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus, Documents
from vocabshift.text.documents import pack
from vocabshift.text.normalize import normalizer_function
from vocabshift.text.patterns import Pattern, compile_pattern, splitter

WEIGHT_UNIT = 4096
"""One occurrence of weight 1, in the fixed-point unit of weighted counts."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all, if these are known."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A block whose documents the core can take as they are."""

    data: bytes | memoryview
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    group: int  # number of the weight


@dataclass
class CorpusReader:
    """Reads a corpus for one pattern and normalizer; can be read again and again."""

    corpus: Corpus
    pattern: Pattern
    normalizer: str | None = None
    special_tokens: tuple[str, ...] = ()
    """Cut out of the text before anything else, as the finished tokenizer will do."""
    weights: list[float] = field(default_factory=list)  # by group, in order of appearance
    n_bytes: int = 0  # of the documents, as read last
    n_documents: int = 0
    n_special: int = 0  # special tokens that stood in the text
    fingerprint: str = ""  # of the text, labels and weights, as read last

    def __post_init__(self) -> None:
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
        reader = CorpusReader(self.corpus, pattern, self.normalizer, self.special_tokens)
        reader.fingerprint = self.fingerprint
        return reader

    def read(self, progress: Progress | None = None) -> Iterator[Prepared]:
        """All blocks; CorpusError where the text changed since it was read last."""
        before = self.fingerprint
        total = self.corpus.n_bytes_hint
        state = 0
        self.n_bytes = self.n_documents = self.n_special = 0
        for documents in self.corpus.batches():
            label = f"{documents.language}@{documents.weight!r}".encode()
            state = _core.fingerprint(
                documents.data,
                documents.starts,
                documents.ends,
                _core.fingerprint(label, seed=state),
            )
            self.n_bytes += documents.n_bytes
            self.n_documents += len(documents)
            yield from self._prepare(documents)
            if progress is not None:
                progress(self.n_bytes, total)
        self.fingerprint = f"{state:016x}"
        if before and before != self.fingerprint:
            raise CorpusError(
                "the corpus changed between two passes over it; train again when it is at rest"
            )

    def _prepare(self, documents: Documents) -> Iterator[Prepared]:
        if documents.weight not in self.weights:
            self.weights.append(documents.weight)
        group = self.weights.index(documents.weight)
        has_special = self._special_bytes is not None and self._special_bytes.search(documents.data)
        if self.normalize is None and self.split is None and not has_special:
            yield Prepared(documents.data, documents.starts, documents.ends, group)
            return
        for block in pack(self._pieces(documents), documents.source):
            yield Prepared(block.data, block.starts, block.ends, group)

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

    def fixed_point_weights(self) -> list[int]:
        """Weight of each group in the core's unit: 1 where all are alike, else WEIGHT_UNIT times.

        Rescaled so that the smallest is at least 1 (method.md, section 1).
        """
        if len(set(self.weights)) <= 1:
            return [1] * len(self.weights)
        return [round(weight * self._scale()) for weight in self.weights]

    def min_count(self, min_frequency: int) -> int:
        """`min_frequency` in the unit of `fixed_point_weights`."""
        return max(1, round(min_frequency * self._scale()))

    def _scale(self) -> float:
        """What one occurrence of weight 1 counts."""
        if len(set(self.weights)) <= 1:
            return 1
        return max(WEIGHT_UNIT, 1 / min(self.weights))


def count_words(
    reader: CorpusReader, *, threads: int = 1, progress: Progress | None = None
) -> _core.WordCounter:
    """Count the pre-tokens of a corpus, one table per weight; finished, ready for training."""
    counter = _core.WordCounter(reader.scanner, threads)
    for block in reader.read(progress):
        counter.add(block.data, block.starts, block.ends, block.group)
    counter.finish()
    return counter
