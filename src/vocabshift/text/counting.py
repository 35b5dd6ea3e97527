"""From a corpus to what the core trains on: prepared blocks of text, and counted words.

Owns how weights become fixed-point numbers, how text is normalized and cut before the core sees
it (by the core's scanner, or by `tokenizers` for any other pattern), and the corpus fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

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

_LARGEST_WEIGHT = 1 << 40  # leaves room for sums in 64 bits

Progress = Callable[[int, int | None], None]
"""Called with the bytes done and the bytes in all, if these are known."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A block whose documents the core can take as they are."""

    data: bytes | memoryview
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    group: int  # index into CorpusReader.groups


@dataclass(slots=True)
class Group:
    """Documents that count alike."""

    language: str | None  # None too where languages are not told apart
    weight: float
    n_bytes: int = 0
    n_documents: int = 0


@dataclass
class CorpusReader:
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
    groups: list[Group] = field(default_factory=list)  # in order of appearance
    n_special: int = 0  # special tokens that stood in the text
    fingerprint: str = ""  # of the text, labels and weights, as read last

    def __post_init__(self) -> None:
        check_sampling_alpha(self.sampling_alpha, self.corpus)
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
        )
        reader.restore(self.state())
        return reader

    def state(self) -> dict[str, Any]:
        """What reading found out, as plain JSON values."""
        return {
            "groups": [asdict(group) for group in self.groups],
            "n_special": self.n_special,
            "fingerprint": self.fingerprint,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what another reader of the same corpus found out."""
        self.groups = [Group(**group) for group in state["groups"]]
        self.n_special = state["n_special"]
        self.fingerprint = state["fingerprint"]

    @property
    def n_bytes(self) -> int:
        """Bytes of all documents, as read last."""
        return sum(group.n_bytes for group in self.groups)

    @property
    def n_documents(self) -> int:
        """Documents, as read last."""
        return sum(group.n_documents for group in self.groups)

    def read(self, progress: Progress | None = None) -> Iterator[Prepared]:
        """All blocks; CorpusError where the text changed since it was read last."""
        before = self.fingerprint
        total = self.corpus.n_bytes_hint
        heard: set[str | None] = set()
        state = 0
        self.groups = [replace(group, n_bytes=0, n_documents=0) for group in self.groups]
        self.n_special = 0
        done = 0
        for documents in self.corpus.batches():
            heard.add(documents.language)
            label = f"{documents.language}@{documents.weight!r}".encode()
            state = _core.fingerprint(
                documents.data,
                documents.starts,
                documents.ends,
                _core.fingerprint(label, seed=state),
            )
            yield from self._prepare(documents)
            if progress is not None:
                progress(done := done + documents.n_bytes, total)
        silent = [language for language in self.corpus.languages if language not in heard]
        if silent:
            raise CorpusError(
                f"no text is labelled {', '.join(silent)}: name files that are not empty, or leave "
                "the label out"
            )
        self.fingerprint = f"{state:016x}"
        if before and before != self.fingerprint:
            raise CorpusError(
                "the corpus changed between two passes over it; train again when it is at rest"
            )

    def _prepare(self, documents: Documents) -> Iterator[Prepared]:
        group = self._group_of(documents)
        has_special = self._special_bytes is not None and self._special_bytes.search(documents.data)
        if self.normalize is None and self.split is None and not has_special:
            yield Prepared(documents.data, documents.starts, documents.ends, group)
            return
        for block in pack(self._pieces(documents), documents.source):
            yield Prepared(block.data, block.starts, block.ends, group)

    def _group_of(self, documents: Documents) -> int:
        is_apart = self.by_language or self.sampling_alpha is not None
        key = (documents.language if is_apart else None, documents.weight)
        keys = [(group.language, group.weight) for group in self.groups]
        if key not in keys:
            keys.append(key)
            self.groups.append(Group(*key))
        index = keys.index(key)
        group = self.groups[index]
        group.n_bytes += documents.n_bytes
        group.n_documents += len(documents)
        return index

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

    @property
    def weights(self) -> list[float]:
        """What an occurrence counts, by group: weight of its documents times sampling."""
        return sampled_weights(self.groups, self.sampling_alpha)

    def fixed_point_weights(self) -> list[int]:
        """Weight of each group in the core's unit: 1 where all are alike, else WEIGHT_UNIT times.

        Rescaled so that the smallest is at least 1 (method.md, section 1).
        """
        weights = self.weights
        if len(set(weights)) <= 1:
            return [1] * len(weights)
        scale = self._scale()
        if max(scale, max(weights) * scale) > _LARGEST_WEIGHT:
            raise ValueError(
                f"documents count between {min(weights):g} and {max(weights):g} times, too far "
                "apart for exact counts; give weights between 0.000001 and 1000000"
            )
        return [round(weight * scale) for weight in weights]

    def min_count(self, min_frequency: int) -> int:
        """`min_frequency` in the unit of `fixed_point_weights`."""
        return max(1, round(min_frequency * self._scale()))

    def _scale(self) -> float:
        """What one occurrence of weight 1 counts."""
        weights = self.weights
        if len(set(weights)) <= 1:
            return 1
        return max(WEIGHT_UNIT, 1 / min(weights))


def check_sampling_alpha(alpha: float | None, corpus: Corpus) -> None:
    """ValueError for a temperature outside (0, 1], or languages that have no label."""
    if alpha is None:
        return
    if not 0 < alpha <= 1:
        raise ValueError(
            f"sampling_alpha is {alpha!r}; give a number above 0 and up to 1: 1 leaves languages "
            "as large as they are, 0.3 makes them nearly equal"
        )
    if not corpus.languages:
        raise ValueError(
            "sampling_alpha needs languages, and the corpus has no labels; label it as lang=PATH"
        )


def sampled_weights(groups: Sequence[Group], alpha: float | None) -> list[float]:
    """Weights by group with temperature sampling (XLM-R, section 3.1), the total unchanged.

    Nothing is copied: a language of share p counts p ** alpha / sum(q ** alpha) / p times.
    """
    if alpha is None:
        return [group.weight for group in groups]
    totals: dict[str | None, float] = {}
    for group in groups:
        totals[group.language] = totals.get(group.language, 0.0) + group.weight * group.n_bytes
    whole = sum(totals.values())
    powers = {language: (total / whole) ** alpha for language, total in totals.items() if total > 0}
    norm = sum(powers.values())
    factors = {
        language: power / norm / (totals[language] / whole) for language, power in powers.items()
    }
    return [group.weight * factors.get(group.language, 1.0) for group in groups]


def count_words(
    reader: CorpusReader,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    memory_bytes: int = 0,
    spill_folder: str | Path | None = None,
) -> _core.WordCounter:
    """Count the pre-tokens of a corpus by group, ready for training.

    Where counting would take more than `memory_bytes` (0: no limit), words go to nameless files in
    `spill_folder` (None: the current one); the counts are the same. OSError where that fails.
    """
    counter = _core.WordCounter(reader.scanner, threads, memory_bytes, str(spill_folder or "."))
    for block in reader.read(progress):
        counter.add(block.data, block.starts, block.ends, block.group)
    return counter
