"""Chunks: stretches of a row that end where tokens of a teacher end too, and their likelihoods.

Owns where chunks begin and end, and how those of a packed row are found: from the documents in it,
the bytes of their tokens, and what the teacher read of the same documents. Runs no model. All work
is done on the CPU when rows are taken; the device gets two numbers a token (`RowChunks`).

An end is common if a token of either side ends at that byte of the document's text. With debiasing,
it must also be likely to the teacher that a boundary follows (white space or a special token):
otherwise the chunk goes on to the next common end (arXiv 2503.20083, outcome chunk debiasing).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.packing import PlacedDocuments, RowChunks
from vocabshift.cpt.steps import Rows
from vocabshift.errors import CorpusError
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.engine import Engine

Floats = NDArray[np.float32]
Places = NDArray[np.int64]

_TRIED = 1000  # documents of which one must fit before anything is trained


class Reading(NamedTuple):
    """What a teacher read of a document, or of some tokens in a row; one number a token each."""

    ends: NDArray[np.integer]
    """Byte of the text at which each token ends, ascending."""
    logprobs: Floats
    """Log-probability of each token after those before it; NaN where it was not asked for, or has
    none: the first token of a model without BOS."""
    boundaries: Floats
    """Log-probability that a boundary token follows; NaN where it was not asked for."""


class Stretch(NamedTuple):
    """Bytes [start, end] of a document that a row holds."""

    document: int
    text: Callable[[], bytes]
    """The text of the whole document."""
    start: int
    end: int
    corpus: object = None
    """By identity: numbers of documents are those of one corpus."""


class Teacher(Protocol):
    """Knows likelihoods of the documents of one corpus: stored ones, or by running a model."""

    unmatched: set[int]
    """Documents that were asked for and turned out to be another text; `MatchedRows` adds them."""

    @property
    def has_boundaries(self) -> bool:
        """Whether it knows the probability of a boundary after each token."""
        ...

    def fits(self, document: int, text: bytes) -> bool:
        """Whether this is the text of the document."""
        ...

    def read(self, stretches: Sequence[Stretch]) -> list[Reading]:
        """What is known of each stretch: at least the tokens that end in it, its first byte
        included, and from the first token on where it begins with the document."""
        ...


# Finding chunks.


def common_ends(
    student: Places, teacher: NDArray[np.integer], *, is_start: bool
) -> tuple[Places, Places]:
    """Indexes into `student` and `teacher` of the bytes that both hold, ascending.

    Both are ascending bytes: where a stretch begins, and where each of its tokens ends. Of equal
    ones the last counts, as a token without bytes belongs to the one before. `is_start`: the
    student's stretch begins with its document, whose first byte is before its first token; a
    stretch that begins later has no such boundary.
    """
    own, others = _places(student, is_start=is_start), _places(teacher, is_start=True)
    _, at, at_teacher = np.intersect1d(
        student[own], teacher[others], assume_unique=True, return_indices=True
    )
    return own[at], others[at_teacher]


def _places(edges: NDArray[np.integer], *, is_start: bool) -> Places:
    """Indexes of the different bytes of `edges`, for each that of its last occurrence."""
    is_kept = np.ones(len(edges), dtype=bool)
    is_kept[:-1] = edges[1:] != edges[:-1]
    is_kept &= edges != 0
    if is_start and len(edges) and edges[0] == 0:
        is_kept[0] = True
    return is_kept.nonzero()[0]


class Found(NamedTuple):
    """Chunks of a stretch, one after the other."""

    edges: Places  # (n + 1,) chunk i holds the student's tokens [edges[i], edges[i + 1])
    teacher: NDArray[np.float64]  # (n,) log-probabilities; NaN where the teacher gives none


def find_chunks(
    student: Places, reading: Reading, n_bytes: int, config: LoopConfig, *, is_start: bool
) -> Found:
    """The chunks of a stretch: `student` are the bytes at which its tokens begin and end.

    `n_bytes`: of the document, at whose end a chunk may always end.
    """
    low, high = int(student[0]), int(student[-1])
    left = int(np.searchsorted(reading.ends, low, side="left"))
    right = int(np.searchsorted(reading.ends, high, side="right"))
    edges = reading.ends[left:right].astype(np.int64)
    # Edge e of a document is the byte before its token e, and after its token e - 1.
    first = left + 1
    if low == 0:
        edges, first = np.concatenate([np.zeros(1, np.int64), edges]), 0
    own, others = common_ends(student, edges, is_start=is_start)
    at = others + first
    if config.debiasing and len(at) > 1:
        is_likely = reading.boundaries[at - 1] > _log(config.boundary_threshold)
        is_end = is_likely | (at == 0) | (edges[others] == n_bytes)
        own, at = own[is_end], at[is_end]
    if len(at) < 2:
        return Found(own[:0], np.zeros(0))
    of_tokens = reading.logprobs[at[0] : at[-1]].astype(np.float64)
    teacher = np.add.reduceat(of_tokens, at[:-1] - at[0])
    if config.debiasing:
        teacher = teacher + reading.boundaries[at[1:] - 1]
    return Found(own, teacher)


def _log(share: float) -> float:
    return math.log(share) if share else -math.inf


# The chunks of packed rows.


@dataclass(eq=False)
class MatchedRows:
    """Packed rows with the chunks of which a teacher knows the likelihoods.

    A document whose ids do not spell its text, or not the text that the teacher read, has no
    chunks. Its tokens are still targets of the next-token loss.
    """

    rows: Rows
    documents: PlacedDocuments
    length: int  # of a row's inputs
    tokenizer: AnyTokenizer
    teacher: Teacher
    config: LoopConfig

    def __post_init__(self) -> None:
        self._engine = Engine(self.tokenizer)
        self._is_special = np.zeros(self._engine.row_count, dtype=np.int64)
        self._is_special[sorted(self._engine.special_ids)] = 1
        self._corpus = object()
        self._prefixes: dict[int, int | None] = {}  # of documents, see `_prefix`
        # A row of a book must not add up the book: bytes of it before each row, once it was read.
        self._before = np.full(len(self.rows.row_bytes), -1, dtype=np.int64)
        n_tried = min(_TRIED, len(self.documents.indexes))
        if all(self._prefix(number) is None for number in range(n_tried)):
            raise CorpusError(
                f"the ids of {self.tokenizer.name} do not spell the text that the teacher read, "
                f"in none of {n_tried} documents: either that was another text, or a normalizer "
                "changes the text for one of the two tokenizers"
            )

    @property
    def row_bytes(self) -> Places:
        """As `Rows.row_bytes`."""
        return self.rows.row_bytes

    @property
    def n_bytes(self) -> int:
        """As `Rows.n_bytes`."""
        return self.rows.n_bytes

    def take(self, indexes: Places) -> NDArray[np.int32]:
        """As `Rows.take`."""
        return self.rows.take(indexes)

    def chunks(self, indexes: Places) -> RowChunks:
        """The chunks of these rows."""
        numbers = np.full((len(indexes), self.length), -1, dtype=np.int64)
        teacher = np.full(numbers.shape, np.nan, dtype=np.float32)
        parts = [part for row, index in enumerate(indexes) for part in self._parts(row, int(index))]
        readings = self.teacher.read([part.stretch for part in parts]) if parts else []
        n_found = np.zeros(len(indexes), dtype=np.int64)
        for part, reading in zip(parts, readings, strict=True):
            found = find_chunks(
                part.edges, reading, part.n_bytes, self.config, is_start=part.is_start
            )
            n_chunks = len(found.teacher)
            if not n_chunks:
                continue
            ends = found.edges[1:]
            is_kept = ~np.isnan(found.teacher)
            is_kept &= np.add.reduceat(part.is_special[: ends[-1]], found.edges[:-1]) == 0
            if self.config.debiasing:  # the model does not read the last token of a row
                is_kept &= part.target + ends < self.length
            given = np.where(is_kept, n_found[part.row] + np.cumsum(is_kept) - 1, -1)
            targets = slice(part.target + int(found.edges[0]), part.target + int(ends[-1]))
            numbers[part.row, targets] = np.repeat(given, np.diff(found.edges))
            teacher[part.row, (part.target + ends - 1)[is_kept]] = found.teacher[is_kept]
            n_found[part.row] += is_kept.sum()
        return RowChunks(numbers, teacher)

    def _parts(self, row: int, index: int) -> Iterator[_Part]:
        """The stretches of documents in a row, without its first token, which is no target."""
        documents = self.documents
        start = index * self.length + 1
        stop = min(start + self.length, int(documents.ends[-1]))
        at = max(int(np.searchsorted(documents.ends, start, side="right")) - 1, 0)
        while at < len(documents.indexes) and documents.ends[at] < stop:
            begin, end = int(documents.ends[at]), int(documents.ends[at + 1]) - documents.n_between
            first, last = max(start - begin, 0), min(stop, end) - begin
            number, at = at, at + 1
            prefix = self._prefix(number) if first < last else None
            if prefix is None:
                continue
            edges = np.maximum(self._edges(number, first, last) - prefix, 0)
            yield _Part(
                row=row,
                target=begin + first - start,
                edges=edges,
                is_special=self._is_special[documents.ids(number)[first:last]],
                is_start=first == 0,
                n_bytes=int(documents.n_bytes[number]),
                stretch=Stretch(
                    int(documents.indexes[number]),
                    partial(self._text, number, prefix),
                    int(edges[0]),
                    int(edges[-1]),
                    self._corpus,
                ),
            )

    def _prefix(self, number: int) -> int | None:
        """Bytes that the tokenizer has put in front of the text, the space of SentencePiece; None
        where the ids do not spell the text."""
        document = int(self.documents.indexes[number])
        if document not in self._prefixes:
            spelled = self._text(number)
            prefix = len(spelled) - int(self.documents.n_bytes[number])
            is_space = prefix in (0, 1) and spelled[:prefix] == b" " * prefix
            self._prefixes[document] = prefix
            if not (is_space and self.teacher.fits(document, spelled[prefix:])):
                self._prefixes[document] = None  # kept here: a teacher may serve several students
                self.teacher.unmatched.add(document)
        return self._prefixes[document]

    def _edges(self, number: int, first: int, last: int) -> Places:
        """What the tokens of a document spell, in bytes: before token `first`, with which it or a
        row begins, and after each up to `last`, which is not among them."""
        ids, begin = self.documents.ids(number), int(self.documents.ends[number])
        edges = np.zeros(last - first + 1, dtype=np.int64)
        np.cumsum(self._engine.byte_counts[ids[first:last]], out=edges[1:])
        if not first:
            return edges
        row = (begin + first - 1) // self.length
        if self._before[row] < 0:
            rows = np.arange(-(-begin // self.length), (begin + len(ids) - 2) // self.length + 1)
            sums = np.cumsum(self._engine.byte_counts[ids])
            self._before[rows] = sums[rows * self.length - begin]
        edges += self._before[row]
        return edges

    def _text(self, number: int, start: int = 0) -> bytes:
        """What the ids of a document spell, from a byte on."""
        return self._engine.join(self.documents.ids(number).astype(np.int32))[start:]


class _Part(NamedTuple):
    """A stretch of a document in a row."""

    row: int
    target: int  # of its first token
    edges: Places  # (n_tokens + 1,) bytes of the document's text
    is_special: NDArray[np.int64]  # (n_tokens,)
    is_start: bool
    n_bytes: int  # of the document
    stretch: Stretch
