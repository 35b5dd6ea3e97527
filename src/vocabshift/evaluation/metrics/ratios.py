"""Metrics that are ratios of counts of lines: compression, tokens, loss, rare words, drift.

Each is a ratio of two sums over lines (IST's micro-average). Sources: IST (fertility, bytes
per token, normalized sequence length), Matra (tokens per character, sequence reduction, single
characters, tokens per line), the Indic study (fragmented words, fertility by word frequency).

Drift is how far a tokenizer cuts from a base. Owns the comparison of two token sequences of one
line: their Levenshtein distance (tokens inserted, deleted or replaced) and whether they are equal.
Tokens are equal if they have the same bytes, whatever their ids; special tokens if they have the
same text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from vocabshift import _core
from vocabshift.evaluation.lines.counts import Ints, LineCounts
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


def _edits(on: OnText) -> Ints:
    """Distance of each line's tokens from those of the base; equal bytes are the same token."""
    base = on.base
    assert on.base_hashes is not None, "they come with the base's counts"
    ours, theirs = on.token_hashes()[on.counts.ids], on.base_hashes[base.ids]
    offsets = on.counts.offsets
    return _core.edit_distances(
        (ours, offsets[:-1], offsets[1:]), (theirs, base.offsets[:-1], base.offsets[1:])
    )


DRIFT = (
    Metric(
        "levenshtein_distance",
        "drift",
        "edits per line",
        "from the tokens of the base",
        formula=Ratio(lambda on: (on.once(_edits), on.ones)),
        needs=needing("base"),
    ),
    Metric(
        "exact_match_rate",
        "drift",
        "exact match",
        "share of lines cut as by the base",
        formula=Ratio(lambda on: ((on.once(_edits) == 0).astype(np.int64), on.ones)),
        needs=needing("base"),
    ),
)
