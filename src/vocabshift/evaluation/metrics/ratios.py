"""Metrics that are ratios of counts of lines: compression, tokens, loss, rare words, drift.

Each is a ratio of two sums over lines (IST's micro-average). Sources: IST (fertility, bytes
per token, normalized sequence length), Matra (tokens per character, sequence reduction, single
characters, tokens per line), the Indic study (fragmented words, fertility by word frequency).

Drift is how far a tokenizer cuts from a base. Owns the comparison of two token sequences of one
line: their Levenshtein distance (tokens inserted, deleted or replaced) and whether they are equal.
Tokens are equal if they have the same bytes, whatever their ids; special tokens if they have the
same text. Needs rapidfuzz (extra `stats`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.counts import Counts, Ints, LineCounts
from vocabshift.evaluation.lines.texts import BINS
from vocabshift.evaluation.metrics.metric import LOSS, Better, Metric, OnText, Ratio, Terms, needing


def _ratio(terms: Callable[[LineCounts], Terms]) -> Ratio:
    return Ratio(lambda on: terms(on.lines))


def _compression(
    name: str,
    label: str,
    note: str,
    better: Better,
    terms: Callable[[LineCounts], Terms],
    *,
    by_word: bool = False,
) -> Metric:
    """A figure that means nothing where text is lost: what is dropped costs nothing."""
    return Metric(
        name,
        "compression",
        label,
        note,
        better,
        Ratio(lambda on: terms(on.lines), may_lack=by_word),
        needing("words") if by_word else needing(),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_compared=True,
    )


def _bin_terms(number: int, on: OnText) -> Terms:
    return on.lines.tokens_in_bin[:, number], on.lines.words_in_bin[:, number]


METRICS = (
    _compression(
        "fertility",
        "fertility",
        "tokens per word",
        "lower",
        lambda c: (c.n_tokens, c.n_words),
        by_word=True,
    ),
    _compression(
        "bytes_per_token",
        "bytes per token",
        "bytes of UTF-8 per token",
        "higher",
        lambda c: (c.n_bytes, c.n_tokens),
    ),
    _compression(
        "characters_per_token",
        "characters per token",
        "code points per token",
        "higher",
        lambda c: (c.n_characters, c.n_tokens),
    ),
    _compression(  # Matra's NSL
        "tokens_per_character",
        "tokens per character",
        "tokens per code point",
        "lower",
        lambda c: (c.n_tokens, c.n_characters),
    ),
    _compression(
        "sequence_reduction",
        "sequence reduction",
        "1 - tokens / bytes",
        "higher",
        lambda c: (c.n_bytes - c.n_tokens, c.n_bytes),
    ),
    Metric(
        "normalized_sequence_length",
        "compression",
        "normalized sequence length",
        "tokens / tokens of the base tokenizer",
        "lower",
        Ratio(lambda on: (on.lines.n_tokens, on.base.lines.n_tokens)),
        needing("base"),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_compared=True,
    ),
    Metric(
        "single_character_rate",
        "tokens",
        "single-character rate",
        "share of tokens that are one code point",
        "lower",
        _ratio(lambda c: (c.n_single_character_tokens, c.n_tokens)),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_compared=True,
    ),
    Metric(
        "word_fragmentation_rate",
        "tokens",
        "word fragmentation",
        "share of words in more than one token",
        "lower",
        Ratio(lambda on: (on.lines.n_fragmented_words, on.lines.n_words), may_lack=True),
        needing("words"),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_compared=True,
    ),
    Metric(
        "superword_rate",
        "tokens",
        "superword rate",
        "share of tokens with text around a space",
        formula=_ratio(lambda c: (c.n_superword_tokens, c.n_tokens)),
    ),
    Metric(
        "unk_rate",
        "tokens",
        "unknown rate",
        "share of tokens for unknown text",
        "lower",
        _ratio(lambda c: (c.n_unknown_tokens, c.n_tokens)),
        is_compared=True,
    ),
    Metric(  # times the lines it is all tokens: Matra, Table 2
        "tokens_per_line",
        "compression",
        "tokens per line",
        "mean over lines",
        "lower",
        Ratio(lambda on: (on.lines.n_tokens, on.ones)),
        is_spoilt_by_loss=True,
        has_bars=True,
        is_compared=True,
    ),
    Metric(
        LOSS,
        "loss",
        "loss rate",
        "share of lines that do not come back",
        "lower",
        Ratio(lambda on: (on.lines.is_lost, on.ones)),
        is_compared=True,
    ),
    Metric(
        "character_loss_rate",
        "loss",
        "character loss rate",
        "share of characters that do not come back",
        "lower",
        _ratio(lambda c: (c.n_lost_characters, c.n_characters)),
        is_compared=True,
    ),
    *(
        Metric(
            f"fertility_bin_{name}",
            "rare words",
            f"fertility, rank {name.replace('_', '–').replace('–up', ' up')}",
            "tokens per word, words of this frequency rank",
            "lower",
            Ratio(partial(_bin_terms, number), may_lack=True),
            needing("ranks", "words"),
            is_spoilt_by_loss=True,
            is_compared=True,
        )
        for number, name in enumerate(BINS)
    ),
)
"""In the order in which they are listed and computed."""


Row = str | list[int]
"""A token sequence: a character for each token, which rapidfuzz compares ten times as fast as
numbers; numbers where they are more than there are characters."""

Pairs = list[tuple[Row, Row]]
"""Two token sequences of each line, both of one kind, such as ours and the base's."""


def paired(ours: Counts, hashes: Ints, base: Counts, base_hashes: Ints) -> Pairs:
    """The tokens of every line; `hashes` are `TokenFacts.hashes` of the tokenizer of each."""
    sides = ((ours, hashes), (base, base_hashes))
    used = [np.flatnonzero(counts.frequencies(len(named))) for counts, named in sides]
    found = [named[ids] for (_, named), ids in zip(sides, used, strict=True)]
    _, numbers = np.unique(np.concatenate(found), return_inverse=True)
    rows = []
    for (counts, named), ids in zip(sides, used, strict=True):
        number_of = np.zeros(len(named), dtype=np.int64)
        number_of[ids], numbers = numbers[: len(ids)], numbers[len(ids) :]
        n_numbers = len(used[0]) + len(used[1])
        rows.append(rows_of(number_of[counts.ids], counts.offsets, n_numbers))
    return list(zip(*rows, strict=True))


def rows_of(numbers: npt.NDArray[np.integer], offsets: Ints, n_numbers: int) -> list[Row]:
    """The sequence of each line, numbers[offsets[i]:offsets[i + 1]], all below `n_numbers`."""
    flat: Row
    if n_numbers > sys.maxunicode + 1:
        flat = numbers.tolist()
    else:  # among the numbers are those of surrogates, which are no characters of text
        flat = numbers.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [flat[start:end] for start, end in pairwise(offsets.tolist())]


def edit_distances(pairs: Pairs) -> Ints:
    """Levenshtein distance of the tokens of each line, (n_lines,); ImportError names the extra."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise ImportError(
            "edit distances need rapidfuzz: pip install 'vocabshift[stats]'"
        ) from None
    found = (Levenshtein.distance(one, other) for one, other in pairs)
    return np.fromiter(found, np.int64, len(pairs))


def same_lines(pairs: Pairs) -> Ints:
    """1 for each line that both cut into the same tokens, (n_lines,)."""
    return np.fromiter((one == other for one, other in pairs), np.int64, len(pairs))


def _pairs(on: OnText) -> Pairs:
    base = on.base
    assert on.base_hashes is not None, "they come with the base's counts"
    return paired(on.counts, on.token_hashes(), base, on.base_hashes)


DRIFT = (
    Metric(
        "levenshtein_distance",
        "drift",
        "edits per line",
        "from the tokens of the base",
        formula=Ratio(lambda on: (edit_distances(on.once(_pairs)), on.ones)),
        needs=needing("base", "rapidfuzz"),
    ),
    Metric(
        "exact_match_rate",
        "drift",
        "exact match",
        "share of lines cut as by the base",
        formula=Ratio(lambda on: (same_lines(on.once(_pairs)), on.ones)),
        needs=needing("base"),
    ),
)
