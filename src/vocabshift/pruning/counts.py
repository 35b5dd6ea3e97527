"""How often text uses each token, by language: the input of pruning.

Owns the counting over a corpus or a folder of counts, and the total over documents of different
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.counting import CorpusReader, CountReader
from vocabshift.text.patterns import from_spec, to_spec
from vocabshift.text.weighing import Group
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer

Source = Corpus | CountFolder
Progress = Callable[[str, int, int | None], None]
"""Called with the phase, and the bytes done and in all, if these are known."""


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """Final tokens of a text."""

    groups: tuple[Group, ...]  # documents of one language and weight
    weights: tuple[int, ...]  # by group, in fixed point (text/weighing.py)
    by_group: NDArray[np.int64]  # (groups, rows), each document once
    fingerprint: str  # of the corpus

    @property
    def weighted(self) -> NDArray[np.int64]:
        """(rows,) in the unit of the weights."""
        weights = np.array(self.weights, dtype=np.int64)
        return np.asarray(weights @ self.by_group, dtype=np.int64)

    def of_languages(self, languages: set[str | None]) -> NDArray[np.int64]:
        """(rows,) of the documents of these labels, unweighted."""
        chosen = [group.language in languages for group in self.groups]
        return np.asarray(self.by_group[chosen].sum(axis=0), dtype=np.int64)

    @property
    def languages(self) -> list[str | None]:
        """Labels in the order of the corpus."""
        return list(dict.fromkeys(group.language for group in self.groups))

    def bytes_and_tokens(self) -> dict[str | None, tuple[int, int]]:
        """By label: bytes of text and tokens, unweighted."""
        totals = dict.fromkeys(self.languages, (0, 0))
        for group, counts in zip(self.groups, self.by_group, strict=True):
            n_bytes, n_tokens = totals[group.language]
            totals[group.language] = (n_bytes + group.n_bytes, n_tokens + int(counts.sum()))
        return totals


class SourceCounts:
    """A text whose tokens are counted once for each tokenizer.

    An object replaces its source in a pruning, and keeps the counts as long as it exists.
    """

    def __init__(self, source: Source | None) -> None:
        self.source = source
        self._counts: dict[str, TokenCounts] = {}

    @classmethod
    def of(cls, source: Source | SourceCounts | None) -> SourceCounts:
        """The source itself if it is a SourceCounts, else a new one."""
        return source if isinstance(source, SourceCounts) else cls(source)

    def count(self, tokenizer: AnyTokenizer, **run: Any) -> TokenCounts:
        """`count_tokens` of the source, with its options; nothing is counted a second time."""
        assert self.source is not None
        key = tokenizer.fingerprint
        if key not in self._counts:
            self._counts[key] = count_tokens(tokenizer, self.source, **run)
        return self._counts[key]


def require_tokens(counts: TokenCounts, name: str) -> None:
    """CorpusError if all text of a label gives no token of the tokenizer `name`."""
    for label, (_, n_tokens) in counts.bytes_and_tokens().items():
        if n_tokens == 0:
            of_label = "" if label is None else f" of {label!r}"
            raise CorpusError(
                f"{name} makes no token of the text{of_label}: its normalizer removes it, or it "
                "knows none of its characters; leave that text out"
            )


def languages_of(source: Source) -> list[str]:
    """The labels of a source."""
    if isinstance(source, Corpus):
        return source.languages
    labels = (group.language for group in source.groups)
    return list(dict.fromkeys(label for label in labels if label is not None))


def count_tokens(
    tokenizer: AnyTokenizer,
    source: Source,
    *,
    threads: int = 1,
    phase: str = "count",
    progress: Progress | None = None,
) -> TokenCounts:
    """Final tokens of all documents, as the tokenizer encodes them.

    CorpusError if there is no text, or if a folder of counts cannot replace it.
    """
    if isinstance(source, CountFolder):
        return _count_folder(as_tokenizer(tokenizer), source, threads)
    reader = CorpusReader(source, (), by_language=True)
    by_group: list[NDArray[np.int64]] = []
    tick = None if progress is None else lambda done, total: progress(phase, done, total)
    for block in reader.read(tick):
        ids, _ = tokenizer.encode_documents(block.data, block.starts, block.ends, threads=threads)
        counts = np.bincount(ids, minlength=tokenizer.row_count)
        if block.group == len(by_group):
            by_group.append(counts)
        else:
            by_group[block.group] += counts
    weights = tuple(reader.fixed_point_weights())
    return TokenCounts(tuple(reader.groups), weights, np.stack(by_group), reader.fingerprint)


def check_counted(tokenizer: AnyTokenizer, source: Source) -> None:
    """CorpusError if a folder of counts was counted with other pre-tokens than this tokenizer's."""
    if isinstance(source, Corpus):
        return
    if tokenizer.kind != "BPE":
        raise CorpusError(
            f"{tokenizer.name} is a {tokenizer.kind} tokenizer, and a folder of counts is for "
            "byte-level BPE; give a corpus"
        )
    _check_words(as_tokenizer(tokenizer), source)


def _check_words(tokenizer: Tokenizer, source: CountFolder) -> None:
    pattern, normalizer = from_spec(tokenizer.pre_tokenizer), tokenizer.normalizer
    kind = None if normalizer is None else str(normalizer["type"]).lower()
    if pattern is None or kind not in (None, "nfc", "nfd", "nfkc", "nfkd"):
        raise CorpusError(
            f"{tokenizer.name} does not cut text by a byte-level pattern, so that a folder of "
            "counts cannot replace it; give a corpus"
        )
    source.require(pattern, kind, source.special_tokens)
    added = {token.content for token in tokenizer.added_tokens}
    foreign = sorted(set(source.special_tokens) - added)
    if foreign:
        raise CorpusError(
            f"{source.path} was counted with the special token {foreign[0]!r}, which "
            f"{tokenizer.name} does not have; count again without it"
        )


def documents_of(source: Source, language: str | None) -> Iterator[str]:
    """The documents of a label; counted words where there are no documents."""
    if isinstance(source, Corpus):
        parts = [part for part in source.parts if part.language == language]
        yield from (text for _, text in Corpus(parts).texts())
        return
    for number, group in enumerate(source.groups):
        if group.language != language:
            continue
        for data, ends, _ in source.read(number):
            begin = 0
            for end in ends.tolist():
                yield data[begin:end].decode()
                begin = end


def _count_folder(tokenizer: Tokenizer, folder: CountFolder, threads: int) -> TokenCounts:
    _check_words(tokenizer, folder)
    # Words are normalized and cut already, and none is an added token.
    whole = replace(tokenizer, normalizer=None, pre_tokenizer=to_spec(()), added_tokens=())
    reader = CountReader(folder)
    by_group = np.zeros((len(folder.groups), tokenizer.row_count), dtype=np.int64)
    for group in range(len(folder.groups)):
        for data, ends, counts in folder.read(group):
            places = np.asarray(ends, dtype=np.int64)
            starts = np.concatenate([[0], places[:-1]])
            ids, offsets = whole.encode_documents(data, starts, places, threads=threads)
            np.add.at(by_group[group], ids, np.repeat(counts.astype(np.int64), np.diff(offsets)))
    weights = tuple(reader.fixed_point_weights())
    return TokenCounts(tuple(reader.groups), weights, by_group, reader.fingerprint)
