"""Counts of lines: text is tokenized once for each tokenizer, metrics are functions of this.

Owns what is counted of each line and of each token. BOS and EOS are never added. Knows nothing of
ratios, names or reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.spans.placing import place
from vocabshift.evaluation.spans.token_facts import TokenFacts, running_sums
from vocabshift.evaluation.spans.words import BINS, Bytes, cut_words, tokens_of_words
from vocabshift.evaluation.subject import Engine
from vocabshift.evaluation.texts import ALL
from vocabshift.tokenizer.any_tokenizer import Ids

if TYPE_CHECKING:
    from vocabshift.tokenizer.formats.encoder import Encoder
    from vocabshift.tokenizer.tokenizer import Tokenizer

__all__ = ["ALL", "Counts", "LineCounts", "count_lines", "encode_lines"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BATCH_CHARACTERS = 1 << 20  # lines are counted in batches of about this size: constant memory


@dataclass(frozen=True, slots=True, eq=False)
class LineCounts:
    """Counts of one tokenizer on lines of one language; each array is (n_lines,) or
    (n_lines, n_bins)."""

    n_tokens: Ints
    n_single_character_tokens: Ints  # tokens that stand for exactly one Unicode character
    n_bytes: Ints  # of UTF-8
    n_characters: Ints  # code points
    n_words: Ints  # whitespace-separated, at least 1
    n_fragmented_words: Ints  # words in more than one token
    n_superword_tokens: Ints  # tokens with text on both sides of a space
    n_unknown_tokens: Ints  # tokens that stand for text without a token
    n_lost_characters: Ints  # of lines that do not come back
    is_lost: Ints  # 1 for a line that its tokens do not give back
    tokens_in_bin: Floats  # tokens of words by how frequent the word is; no bins unless asked for
    words_in_bin: Ints

    @property
    def n_lines(self) -> int:
        """Lines that were counted."""
        return len(self.n_tokens)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What one tokenizer makes of the lines of one language."""

    lines: LineCounts
    ids: Ids  # of all lines, one after the other
    offsets: Ints  # (n_lines + 1,) into ids

    def frequencies(self, row_count: int) -> Ints:
        """How often each id occurs, (row_count,)."""
        return np.bincount(self.ids, minlength=row_count)


def encode_lines(
    tokenizer: Tokenizer | Encoder, lines: Sequence[str], threads: int = 1
) -> tuple[Ids, Ints]:
    """Token ids of all lines in one array, and (n_lines + 1,) offsets into it; no BOS or EOS.

    For scoring models. A Tokenizer is compiled in each call: to encode many batches, give an
    Encoder.
    """
    from vocabshift.tokenizer.formats.encoder import Encoder

    encoder = tokenizer if isinstance(tokenizer, Encoder) else Encoder(tokenizer)
    return encoder.encode_batch(lines, threads=threads)


def count_lines(
    engine: Engine,
    facts: TokenFacts,
    lines: Sequence[str],
    *,
    bins: Bytes | None = None,
    threads: int = 1,
) -> Counts:
    """Counts of the lines of one language; `facts` are those of the engine.

    `bins`: index into BINS of every word, (n_words,), where tokens are counted by them.
    """
    parts: list[Counts] = []
    n_words = 0
    for batch in _batches(lines):
        of_batch = None if bins is None else bins[n_words:]
        parts.append(_count_batch(engine, facts, batch, of_batch, threads))
        n_words += int(parts[-1].lines.n_words.sum())
    return _concatenate(parts)


def _count_batch(
    engine: Engine, facts: TokenFacts, lines: Sequence[str], bins: Bytes | None, threads: int
) -> Counts:
    ids, offsets = engine.encode_batch(lines, threads=threads)
    placed = place(engine, facts, lines, ids, offsets)
    layout = placed.layout
    n_tokens = np.diff(offsets)
    tokens_in_bin: Floats = np.zeros((len(lines), 0))
    words_in_bin: Ints = np.zeros((len(lines), 0), dtype=np.int64)
    if bins is not None:
        line = np.repeat(np.arange(len(lines)), n_tokens)
        tokens = tokens_of_words(layout, placed.starts, placed.ends, line)
        n_words = np.diff(layout.line_words)
        cell = np.repeat(np.arange(len(lines)) * len(BINS), n_words) + bins[: len(tokens)]
        shape = (len(lines), len(BINS))
        size = len(lines) * len(BINS)
        tokens_in_bin = np.asarray(np.bincount(cell, tokens, size).reshape(shape), np.float64)
        words_in_bin = np.bincount(cell, minlength=size).reshape(shape)
    unknown = _unknown(engine)
    counted = LineCounts(
        n_tokens=n_tokens,
        n_single_character_tokens=_per_line(ids, offsets, facts.is_single_character.__getitem__),
        n_bytes=np.fromiter((len(line.encode()) for line in lines), np.int64, len(lines)),
        n_characters=np.fromiter(map(len, lines), np.int64, len(lines)),
        n_words=np.diff(layout.line_words),
        n_fragmented_words=cut_words(layout, placed.starts),
        n_superword_tokens=_per_line(ids, offsets, facts.is_superword.__getitem__),
        n_unknown_tokens=_per_line(ids, offsets, lambda some: some == unknown),
        n_lost_characters=placed.n_lost_characters,
        is_lost=placed.is_lost,
        tokens_in_bin=tokens_in_bin,
        words_in_bin=words_in_bin,
    )
    return Counts(counted, ids, offsets)


def _unknown(engine: Engine) -> int:
    return -1 if engine.unknown_id is None else engine.unknown_id


def _per_line(ids: Ids, offsets: Ints, has_flag: Callable[[Ids], npt.NDArray[np.bool_]]) -> Ints:
    """How many tokens of each line have a flag, (n_lines,)."""
    return np.diff(running_sums(len(ids), lambda part: has_flag(ids[part]))[offsets])


def _batches(lines: Sequence[str]) -> list[Sequence[str]]:
    """The lines in runs of about _BATCH_CHARACTERS."""
    batches: list[Sequence[str]] = []
    start = size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size >= _BATCH_CHARACTERS:
            batches.append(lines[start : number + 1])
            start, size = number + 1, 0
    return [*batches, lines[start:]] if start < len(lines) else batches


def _concatenate(parts: Sequence[Counts]) -> Counts:
    if len(parts) == 1:
        return parts[0]
    lines = LineCounts(
        *(
            np.concatenate([getattr(part.lines, name) for part in parts])
            for name in LineCounts.__slots__
        )
    )
    offsets = np.zeros(lines.n_lines + 1, dtype=np.int64)
    np.cumsum(lines.n_tokens, out=offsets[1:])
    return Counts(lines, np.concatenate([part.ids for part in parts]), offsets)


# How far a tokenizer's cuts lie from a base's, line by line.
#
# Owns the comparison of two token sequences of one line: their Levenshtein distance (tokens put in,
# taken out or replaced) and whether they are the same. Tokens are the same where they stand for the
# same bytes, whatever their ids; special tokens by how they are written. Needs rapidfuzz (extra
# `stats`). Knows nothing of ratios.


Int64 = npt.NDArray[np.int64]


Pairs = list[tuple[list[int], list[int]]]
"""The tokens of each line by their hashes: ours and the base's."""


def paired(ours: Counts, hashes: Int64, base: Counts, base_hashes: Int64) -> Pairs:
    """The tokens of every line; `hashes` are `TokenFacts.hashes` of the tokenizer of each."""
    return list(zip(_rows(ours, hashes), _rows(base, base_hashes), strict=True))


def distances(pairs: Pairs) -> Int64:
    """Levenshtein distance of the tokens of each line, (n_lines,); ImportError names the extra."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise ImportError(
            "levenshtein_distance needs rapidfuzz: pip install 'vocabshift[stats]'"
        ) from None
    found = (Levenshtein.distance(one, other) for one, other in pairs)
    return np.fromiter(found, np.int64, len(pairs))


def same_lines(pairs: Pairs) -> Int64:
    """1 for each line that both cut into the same tokens, (n_lines,)."""
    return np.fromiter((one == other for one, other in pairs), np.int64, len(pairs))


def _rows(counts: Counts, hashes: Int64) -> list[list[int]]:
    named = hashes[counts.ids].tolist()
    return [named[start:end] for start, end in pairwise(counts.offsets.tolist())]
