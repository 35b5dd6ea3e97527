"""Counts of lines: each tokenizer encodes the text once, and metrics are functions of the counts.

Owns the counts of each line and of each token. BOS and EOS are never added. Knows nothing of
ratios, names or reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.placing import place
from vocabshift.evaluation.lines.texts import BINS, Bytes
from vocabshift.evaluation.lines.token_facts import TokenFacts, running_sums
from vocabshift.evaluation.lines.words import Cut, cut_words, no_words, tokens_of_words
from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.engine import Engine

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
    n_words: Ints  # at least 1; 0 on all lines of a language whose words are not known
    n_fragmented_words: Ints  # words in more than one token
    n_superword_tokens: Ints  # tokens with text on both sides of a space
    n_unknown_tokens: Ints  # tokens that stand for text without a token
    n_lost_characters: Ints  # of lines that do not come back
    is_lost: Ints  # 1 for a line that does not round-trip
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


def count_lines(
    engine: Engine,
    facts: TokenFacts,
    lines: Sequence[str],
    *,
    bins: Bytes | None = None,
    cut: Cut | None = None,
    threads: int = 1,
) -> Counts:
    """Counts of the lines of one language; `facts` are those of the engine.

    `bins`: index into BINS of every word, (n_words,), where tokens are counted by them.
    `cut`: finds the words of a language without spaces, which are in no bin.
    """
    parts: list[Counts] = []
    n_words = 0
    for batch in _batches(lines):
        of_batch = None if bins is None else bins[n_words:]
        parts.append(_count_batch(engine, facts, batch, bins=of_batch, cut=cut, threads=threads))
        n_words += int(parts[-1].lines.n_words.sum())
    return _concatenate(parts)


def _count_batch(
    engine: Engine,
    facts: TokenFacts,
    lines: Sequence[str],
    *,
    bins: Bytes | None,
    cut: Cut | None,
    threads: int,
) -> Counts:
    ids, offsets = engine.encode_batch(lines, threads=threads)
    is_known = cut is not no_words
    placed = place(engine, lines, ids, offsets, cut=cut if is_known else None)
    layout = placed.layout
    n_tokens = np.diff(offsets)
    n_bins = 0 if bins is None else len(BINS)
    tokens_in_bin: Floats = np.zeros((len(lines), n_bins))
    words_in_bin: Ints = np.zeros((len(lines), n_bins), dtype=np.int64)
    if bins is not None and cut is None:
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
        n_words=np.diff(layout.line_words) * is_known,
        n_fragmented_words=cut_words(layout, placed.starts) * is_known,
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
