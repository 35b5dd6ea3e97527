"""What a normalizer does to text: the share of words that it changes, by language.

Table 15 of the Indic study, for any normalizer and text. A word is what stands between whitespace,
and is normalized on its own. Knows nothing of tokenizers.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from vocabshift.evaluation.texts import read_lines
from vocabshift.results import Result, Results
from vocabshift.text.normalize import normalizer_function

WORDS = "words_changed"
UNIQUE_WORDS = "unique_words_changed"


def normalization_effect(texts: Any, normalizer: str) -> Results:
    """Shares of words, and of different words, that `normalizer` changes.

    `texts` is what `evaluate` takes. Two rows for each language: `words_changed` (`n` words) and
    `unique_words_changed` (`n` different words); the subject is the normalizer's name. ValueError
    for a normalizer that is not known, CorpusError for a language without text.
    """
    normalize = normalizer_function(normalizer)
    if normalize is None:
        raise ValueError("there is nothing to measure: the normalizer is none; name one")
    rows = []
    for language, lines in read_lines(texts).items():
        words = Counter(word for line in lines for word in line.split())
        changed = [word for word in words if normalize(word) != word]
        n_words = words.total()
        share = sum(words[word] for word in changed) / n_words
        unique_share = len(changed) / len(words)
        rows.append(Result(normalizer, language, WORDS, share, n_words))
        rows.append(Result(normalizer, language, UNIQUE_WORDS, unique_share, len(words)))
    return Results(rows)
