"""What a metric means to a reader: a label, a sentence, and which direction is better, as data.

Knows nothing of how metrics are computed. A metric that is not listed is shown by its own name and
judged in no direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Notes on the linguistic metrics (see `metric_notes`): label, sentence, direction.


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

# ---


ALL_LANGUAGES = "all"
"""The language of figures that belong to a tokenizer as a whole, and of text without a label."""


_LOWER, _HIGHER = -1, 1
_BINS = ("1_10", "11_100", "101_1000", "1001_10000", "10001_up", "unseen")

NOTES: Mapping[str, MetricNote] = {
    "fertility": MetricNote("fertility", "tokens per word", _LOWER),
    "bytes_per_token": MetricNote("bytes per token", "bytes of UTF-8 per token", _HIGHER),
    "characters_per_token": MetricNote("characters per token", "code points per token", _HIGHER),
    "tokens_per_character": MetricNote("tokens per character", "tokens per code point", _LOWER),
    "tokens_per_line": MetricNote("tokens per line", "mean over lines", _LOWER),
    "sequence_reduction": MetricNote("sequence reduction", "1 - tokens / bytes", _HIGHER),
    "normalized_sequence_length": MetricNote(
        "normalized sequence length", "tokens / tokens of the base tokenizer", _LOWER
    ),
    "single_character_rate": MetricNote(
        "single-character rate", "share of tokens that are one code point", _LOWER
    ),
    "word_fragmentation_rate": MetricNote(
        "word fragmentation", "share of words in more than one token", _LOWER
    ),
    "superword_rate": MetricNote("superword rate", "share of tokens with text around a space"),
    "unk_rate": MetricNote("unknown rate", "share of tokens for unknown text", _LOWER),
    "loss_rate": MetricNote("loss rate", "share of lines that do not come back", _LOWER),
    "character_loss_rate": MetricNote(
        "character loss rate", "share of characters that do not come back", _LOWER
    ),
    **{
        f"fertility_bin_{name}": MetricNote(
            f"fertility, rank {name.replace('_', '–').replace('–up', ' up')}",
            "tokens per word, words of this frequency rank",
            _LOWER,
        )
        for name in _BINS
    },
    "renyi_entropy": MetricNote("Rényi entropy", "of the distribution of tokens, in bits"),
    "renyi_efficiency": MetricNote(
        "Rényi efficiency", "entropy / log2 of the vocabulary size", _HIGHER
    ),
    "gini": MetricNote("Gini coefficient", "of tokens over languages", _LOWER),
    "normalized_variance": MetricNote(
        "normalized variance", "of tokens over languages, by the squared mean", _LOWER
    ),
    "coefficient_of_variation": MetricNote(
        "coefficient of variation", "of tokens over languages", _LOWER
    ),
    "premium": MetricNote("premium", "tokens / tokens of the reference language", _LOWER),
    "levenshtein_distance": MetricNote("edits per line", "from the tokens of the base"),
    "exact_match_rate": MetricNote("exact match", "share of lines cut as by the base"),
    "vocabulary_overlap": MetricNote(
        "overlap with the base", "share of the smaller vocabulary in both"
    ),
    "pairwise_overlap": MetricNote(
        "overlap of vocabularies", "share of the smaller vocabulary in both"
    ),
    "vocab_size": MetricNote("vocabulary size", "tokens of the model"),
    "script_share": MetricNote("script share", "share of the vocabulary, by script"),
    "language_share": MetricNote("language share", "share of the vocabulary that a text uses"),
    "own_language_share": MetricNote(
        "own language share", "share of the vocabulary that only this language uses"
    ),
    "superword_share": MetricNote("superword share", "share of superwords in the vocabulary"),
    "terminal_spanning_count": MetricNote(
        "terminal-spanning tokens", "with text behind the end of a sentence", _LOWER
    ),
    "unused_share": MetricNote("unused share", "of the vocabulary, in no text", _LOWER),
    **LINGUISTIC_NOTES,
    "bits_per_byte": MetricNote("bits per byte", "of a language model's prediction", _LOWER),
}

WHOLE = frozenset(
    {
        *("gini", "normalized_variance", "coefficient_of_variation", "vocab_size"),
        *("superword_share", "terminal_spanning_count", "unused_share", "vocabulary_overlap"),
    }
)
"""Metrics whose one row belongs to a tokenizer as a whole."""

IN_PLACE_OF_LANGUAGES: Mapping[str, str] = {
    "script_share": "script",
    "vocabulary_overlap": "script",
    "pairwise_overlap": "with",
}
"""What the rows of a metric are where they are no languages; they have no mean."""


def note_of(metric: str) -> MetricNote:
    """The note of a metric; its name with spaces where there is none."""
    return NOTES.get(metric) or MetricNote(metric.replace("_", " "), "")
