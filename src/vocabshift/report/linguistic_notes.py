"""Notes on the linguistic metrics (see `metric_notes`): label, sentence, direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricNote:
    """For one metric."""

    label: str
    meaning: str
    better: int = 0  # 1: higher; -1: lower; 0: neither


_LOWER, _HIGHER = -1, 1
_CHANGES = {
    "swap": "two neighbouring characters swapped",
    "delete": "a character left out",
    "replace": "a character replaced",
    "nfc": "in NFC",
    "nfd": "in NFD",
    "leading_space": "a space in front",
    "trailing_space": "a space behind",
    "lowercase": "in lower case",
    "uppercase": "in upper case",
}
_TYPOS = ("swap", "delete", "replace")

LINGUISTIC_NOTES: Mapping[str, MetricNote] = {
    "character_cut_rate": MetricNote("cut characters", "share of tokens that cut one", _LOWER),
    "grapheme_cut_rate": MetricNote("cut graphemes", "share of tokens that cut one", _LOWER),
    "syllable_cut_rate": MetricNote("cut syllables", "share of tokens that cut one", _LOWER),
    "syllable_border_rate": MetricNote("cuts between syllables", "share of all cuts", _HIGHER),
    "whole_syllable_rate": MetricNote(
        "whole syllables", "share of syllables that nothing cuts", _HIGHER
    ),
    "tokens_per_digit": MetricNote("tokens per digit", "of numbers", _LOWER),
    "single_token_digits": MetricNote("digits that are tokens", "share of ten", _HIGHER),
    "thousands_grouping": MetricNote("1,234,567", "share of numbers cut like it", _HIGHER),
    "thousands_border_rate": MetricNote(
        "borders at thousands", "share of them where a token ends", _HIGHER
    ),
    "lakh_grouping": MetricNote("12,34,567", "share of numbers cut like it", _HIGHER),
    "digit_consistency": MetricNote(
        "digits cut alike", "share of numbers cut as behind one more digit", _HIGHER
    ),
    **{
        f"{name}_change": MetricNote(
            f"changed ids: {name.replace('_', ' ')}", f"share of ids that differ, {what}", _LOWER
        )
        for name, what in _CHANGES.items()
    },
    **{
        f"{name}_locality": MetricNote(
            f"locality: {name}",
            f"share of other words' tokens that stay, {_CHANGES[name]}",
            _HIGHER,
        )
        for name in _TYPOS
    },
    "code_switch_premium": MetricNote(
        "code-switching premium", "tokens / tokens of the same words in one language", _LOWER
    ),
    "switch_span_rate": MetricNote(
        "tokens over a switch", "share of changes of language inside of a token"
    ),
    "morph_score": MetricNote("MorphScore", "token borders that are morpheme borders", _HIGHER),
    "morph_score_as_published": MetricNote(
        "MorphScore, as published", "as the authors' program counts", _HIGHER
    ),
    "morph_segment_score": MetricNote(
        "MorphScore, segments", "share of morphemes of cut words that are cut out exactly", _HIGHER
    ),
    "morph_border_precision": MetricNote(
        "morpheme precision", "share of cuts in words that lie between morphemes", _HIGHER
    ),
    "morph_border_recall": MetricNote(
        "morpheme recall", "share of morpheme borders where a token ends", _HIGHER
    ),
    "morph_border_f1": MetricNote("morpheme F1", "of the two", _HIGHER),
    "morph_single_token_rate": MetricNote("words in one token", "share of words with morphemes"),
}
