"""Snippets of a corpus in which new tokens occur, as the old and the new tokenizer read them.

Every document is encoded once by each tokenizer. It is cut where both have a token boundary, into
stretches of about equal length; a stretch is kept if it holds a new token that has fewer snippets
than wanted. Positions are compared in bytes of the text, so that tokens may span several words or
end inside a character. Documents are read in order and nothing is random: the same corpus gives the
same snippets. At most twice the wanted number of tokens is held, as ids (12 bytes for each new
token and its share of old ones, about). Knows nothing of models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from vocabshift.errors import CorpusError
from vocabshift.progress import PhaseProgress
from vocabshift.surgery.options import DistillOptions
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.token_spans import spans_of_ids

Ints = npt.NDArray[np.int32]

_DOCUMENTS = 1024  # encoded at a time
_LONGEST = 4  # times the wanted length: a stretch without a common boundary may be as long as this


@dataclass(frozen=True, slots=True, eq=False)
class Snippet:
    """A stretch of text in two readings, without special tokens around it."""

    old: Ints  # (n_old,) ids of the old tokenizer
    new: Ints  # (n_new,) ids of the new one
    at_old: Ints  # (n_common,) places in `old` of tokens that end where one of `new` ends
    at_new: Ints  # (n_common,) the places of these in `new`; both ascend


@dataclass(frozen=True, slots=True)
class Around:
    """Special tokens before and after a snippet."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def n_tokens(self) -> int:
        """How many these are."""
        return len(self.before) + len(self.after)


@dataclass(frozen=True, eq=False)
class Snippets:
    """What was found for the new tokens of one transfer."""

    snippets: list[Snippet]
    counts: npt.NDArray[np.int64]  # (n_made,) snippets of each new token
    n_bytes: int  # of the corpus, read

    @property
    def n_old(self) -> int:
        """Old tokens in all of them."""
        return sum(len(each.old) for each in self.snippets)

    @property
    def n_new(self) -> int:
        """New tokens in all of them."""
        return sum(len(each.new) for each in self.snippets)


def find_snippets(
    corpus: Corpus,
    old: AnyTokenizer,
    new: AnyTokenizer,
    made: npt.NDArray[np.int64],
    options: DistillOptions,
    *,
    most_old: int | None = None,
    most_new: int | None = None,
    threads: int = 1,
    progress: PhaseProgress | None = None,
) -> Snippets:
    """Snippets with the tokens `made` (new ids); `most_old`, `most_new`: tokens in one, at most.

    Reading ends where every token has as many as wanted; `threads` changes nothing but speed.

    CorpusError where the corpus holds no text, or none of the tokens.
    """
    shelf = _Shelf(made, new.row_count, options)
    readers, most = (Engine(old), Engine(new)), (most_old, most_new)
    n_bytes = n_read = 0
    for some in _chunks(corpus):
        for snippet in _cut(some, readers, options.snippet_tokens, most, threads):
            shelf.add(snippet)
            n_read += len(snippet.new)
        n_bytes += sum(len(text.encode()) for text in some)
        if progress is not None:
            progress(n_read, None)
        if shelf.is_full:
            break
    if not shelf.kept:
        raise CorpusError(
            f"init 'distill' found none of the {len(made):,} new tokens in the corpus "
            f"({n_bytes:,} bytes); give text of the new tokenizer's languages"
        )
    shelf.fit(options.tokens)
    return Snippets(shelf.kept, shelf.counts, n_bytes)


def _chunks(corpus: Corpus) -> Iterator[list[str]]:
    """The documents that are encoded at a time."""
    for documents in corpus.batches():
        texts = list(documents.texts())
        for start in range(0, len(texts), _DOCUMENTS):
            yield texts[start : start + _DOCUMENTS]


def _cut(
    texts: Sequence[str],
    readers: tuple[Engine, Engine],
    length: int,
    most: tuple[int | None, int | None],
    threads: int,
) -> Iterator[Snippet]:
    """The stretches of each text, in order."""
    spans = []
    for reader in readers:
        # Strings of special tokens in a corpus are text: no reading may contain a real one.
        ids, offsets = reader.encode_batch(texts, threads=threads, parse_special=False)
        spans.append(spans_of_ids(reader, texts, ids, offsets, parse_special=False))
    for old, new in zip(*spans, strict=True):
        yield from cut_document((old.ids, old.ends), (new.ids, new.ends), length, *most)


def cut_document(
    old: tuple[Ints, npt.NDArray[np.int64]],
    new: tuple[Ints, npt.NDArray[np.int64]],
    length: int,
    most_old: int | None = None,
    most_new: int | None = None,
) -> Iterator[Snippet]:
    """The stretches of one document; `old` and `new`: ids and ends in bytes, both (n_tokens,)."""
    at_old, at_new = common_ends(old[1], new[1])
    if not len(at_old):
        return
    n_new = int(at_new[-1]) + 1
    n_stretches = -(-n_new // length)
    nth = 1  # of equal parts of the document; where this one is to end
    most_old = old[1].size if most_old is None else most_old
    most_new = min(_LONGEST * length, new[1].size if most_new is None else most_new)
    ends = list(zip(at_old.tolist(), at_new.tolist(), strict=True))
    first_old = first_new = begin = 0
    for place, (end_old, end_new) in enumerate(ends):
        if place + 1 < len(ends):
            next_old, next_new = ends[place + 1]
            fits = next_old + 1 - first_old <= most_old and next_new + 1 - first_new <= most_new
            if fits and (next_new + 1) * n_stretches <= n_new * nth:
                continue
        own = slice(first_old, end_old + 1), slice(first_new, end_new + 1)
        # One without a common boundary inside may still be too long: it is left out.
        if end_new + 1 - first_new <= most_new and end_old + 1 - first_old <= most_old:
            inside = slice(begin, place + 1)
            yield Snippet(
                old[0][own[0]],
                new[0][own[1]],
                (at_old[inside] - first_old).astype(np.int32),
                (at_new[inside] - first_new).astype(np.int32),
            )
        first_old, first_new, begin = end_old + 1, end_new + 1, place + 1
        nth = round(first_new * n_stretches / n_new) + 1


def digest_of(ids: npt.NDArray[np.int64], snippets: Sequence[Snippet]) -> str:
    """A sha256 of the ids to learn and of what every snippet holds, in order."""
    digest = hashlib.sha256(ids.astype("<i8").tobytes())
    for each in snippets:
        arrays = (each.old, each.new, each.at_old, each.at_new)
        digest.update(np.array([len(array) for array in arrays], dtype="<i8").tobytes())
        for array in arrays:
            digest.update(array.astype("<i4").tobytes())
    return digest.hexdigest()


def common_ends(
    old: npt.NDArray[np.int64], new: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Places of the tokens that end at the same byte in both readings; `old`, `new`: ends.

    Of tokens that stand for no byte of the text the last one counts: after it, both readings have
    read the same.
    """
    last_old, last_new = (np.flatnonzero(np.diff(ends, append=-1) != 0) for ends in (old, new))
    _, at_old, at_new = np.intersect1d(
        old[last_old], new[last_new], assume_unique=True, return_indices=True
    )
    return last_old[at_old], last_new[at_new]


@dataclass
class _Shelf:
    """The snippets kept so far: each brought a token of which there were fewer than `cap`."""

    made: npt.NDArray[np.int64]
    n_rows: int
    options: DistillOptions
    kept: list[Snippet] = field(default_factory=list)
    n_tokens: int = 0

    def __post_init__(self) -> None:
        self.cap = self.options.snippets
        self.counts = np.zeros(len(self.made), dtype=np.int64)
        self._place = np.full(self.n_rows, -1, dtype=np.int64)  # of each id in `made`
        self._place[self.made] = np.arange(len(self.made))

    @property
    def is_full(self) -> bool:
        """Whether no snippet can bring a token that is wanted; a cap only falls, so for good."""
        return bool((self.counts >= self.cap).all())

    def add(self, snippet: Snippet) -> None:
        """Keep the snippet if it is needed."""
        if self._take(snippet):
            # What was cut is a view, which would hold the ids of all documents encoded with it.
            own = snippet.old.copy(), snippet.new.copy()
            self.kept[-1] = replace(snippet, old=own[0], new=own[1])
        if self.n_tokens > 2 * self.options.tokens:
            self.fit(self.options.tokens)

    def _take(self, snippet: Snippet) -> bool:
        places = np.unique(self._place[snippet.new])
        places = places[places >= 0]
        if not (self.counts[places] < self.cap).any():
            return False
        self.counts[places] += 1
        self.kept.append(snippet)
        self.n_tokens += len(snippet.new)
        return True

    def fit(self, n_tokens: int) -> None:
        """Lower the cap until at most `n_tokens` are kept; with a cap of 1, the first ones."""
        low, high = 1, self.cap
        if self.n_tokens <= n_tokens:
            return
        while low < high:  # the largest cap that fits
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._with(middle) <= n_tokens else (low, middle - 1)
        self._with(low, most=n_tokens, keep=True)

    def _with(self, cap: int, *, most: int | None = None, keep: bool = False) -> int:
        """How many tokens a cap would keep; `keep`: keep just these."""
        trial = _Shelf(self.made, self.n_rows, self.options)
        trial.cap = cap
        for snippet in self.kept:
            if most is not None and trial.n_tokens + len(snippet.new) > most:
                break
            trial._take(snippet)
        if keep:
            self.kept, self.counts = trial.kept, trial.counts
            self.n_tokens, self.cap = trial.n_tokens, cap
        return trial.n_tokens
