"""What each language must count for a sentence to need about as many tokens in any of them.

Owns the search (docs/vocabshift-recipe.md). Knows neither parallel text nor stage 2:

- Languages are alike at first: each counts as if it had as many Unicode characters as any other.
  Translations have about as many characters in all languages (not as many bytes or words), so this
  gives each the same amount of content, and tokens per character stand for tokens per content.
- Then the word stage is trained, and a language counts more, the more tokens per character its
  held-out words take: in proportion to that number to the power of `balance`. Doing so again with
  these weights changes nothing that could be measured (docs/vocabshift-recipe.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.text.counting import CorpusReader
from vocabshift.text.word_samples import WordSample
from vocabshift.trainers.stage import Stage
from vocabshift.trainers.word_stage import WordRule, WordWeight, train_words
from vocabshift.trainers.work import Work

Samples = Mapping[str | None, WordSample]
Weights = dict[str | None, float]

CODE = "code"
"""The label of program text: it gets the share of a language, whatever tokens it takes."""


def equal_characters(reader: CorpusReader, samples: Samples) -> Weights:
    """Weights under which all languages have as many characters; bytes in all as before."""
    return _scaled(
        {
            language: 1 / _characters(reader, language, sample)
            for language, sample in samples.items()
        },
        reader,
    )


def search_weights(
    reader: CorpusReader,
    samples: Samples,
    rule: WordRule,
    *,
    balance: float,
    export: Callable[[Stage], Tokenizer],
    work: Work,
) -> Weights:
    """The weights, by one training of the word stage; by none where `balance` is 0.

    `export` makes the tokenizer of a word stage. `reader` must tell languages apart.
    """
    reader.language_weights = {}
    folder = work.folder or Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix="vocabshift-", dir=folder) as temporary:
        counter = reader.count_words(
            threads=work.threads,
            progress=work.in_phase("weights"),
            memory_bytes=work.share_of_memory(0.5),
            spill_folder=Path(temporary),
        )
        base = equal_characters(reader, samples)
        if not balance:
            return base
        reader.language_weights = base
        rates = _rates(export(train_words(counter, reader, rule, WordWeight(), work)), samples)
    return _scaled({k: base[k] * rates[k] ** balance for k in base}, reader)


def _rates(tokenizer: Tokenizer, samples: Samples) -> dict[str | None, float]:
    """Tokens per character of each language's words, over the geometric mean of all."""
    encoder = Encoder(tokenizer)
    logs = {
        language: np.log(len(encoder.encode_batch(list(sample.words))[0]) / sample.n_characters)
        for language, sample in samples.items()
    }
    mean = np.mean([value for language, value in logs.items() if language != CODE])
    return {k: 1.0 if k == CODE else float(np.exp(value - mean)) for k, value in logs.items()}


def _characters(reader: CorpusReader, language: str | None, sample: WordSample) -> float:
    return reader.language_bytes[language] * sample.characters_per_byte


def _scaled(weights: Weights, reader: CorpusReader) -> Weights:
    """The same proportions, under which the text counts as many bytes as it has."""
    sizes = reader.language_bytes
    total = sum(weights[language] * sizes[language] for language in weights)
    return {k: weight * sum(sizes.values()) / total for k, weight in weights.items()}
