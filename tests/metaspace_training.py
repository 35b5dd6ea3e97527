"""Counting and learning in one call, as `extend` does both for SentencePiece tokenizers."""

from __future__ import annotations

from typing import Any

from vocabshift.extension.continued import Additions, learn
from vocabshift.extension.counting import count_metaspace
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.tokenizer import Tokenizer


def learn_metaspace(
    base: Tokenizer,
    corpus: Corpus,
    *,
    n_tokens: int,
    min_frequency: int = 1,
    tie_break: str = "id",
    threads: int = 1,
    **counting: Any,
) -> Additions:
    """What `base` learns from `corpus`; `counting` are the other options of `count_metaspace`."""
    counted = count_metaspace(base, corpus, threads=threads, **counting)
    return counted.additions(
        learn(
            counted.form,
            counted.text,
            n_tokens=n_tokens,
            tie_break=tie_break,
            min_frequency=min_frequency,
            threads=threads,
        )
    )
