"""What a pruning costs, with tokenizers that only count and give text back."""

from __future__ import annotations

from typing import Any

import numpy as np

from vocabshift.pruning.counts import TokenCounts
from vocabshift.pruning.effects import effects
from vocabshift.text.corpus import Corpus
from vocabshift.text.weighing import Group


class GivesBack:
    """A tokenizer that counts `n_tokens`, and changes text as `change` says."""

    def __init__(self, n_tokens: int, change: Any = str) -> None:
        group = Group("en", 1.0, n_bytes=12, n_documents=3)
        self.counts = TokenCounts((group,), (1,), np.array([[n_tokens]]), "")
        self.change = change

    def count(self, *_: Any, **__: Any) -> TokenCounts:
        return self.counts

    def come_back(self, texts: list[str], threads: int = 1) -> list[str]:
        return [self.change(text) for text in texts]


def test_text_that_does_not_come_back_is_counted() -> None:
    """By this figure `prune` refuses to write a tokenizer that loses text."""
    corpus = Corpus.from_texts({"en": ["abca", "bbbb", "caca"]})
    before, after = GivesBack(4), GivesBack(6, lambda text: text.replace("c", ""))
    found = effects(before, after, corpus, before.counts)
    assert (3, 2) == (found.documents, found.failures)
    (language,) = found.languages
    assert (3.0, 2.0) == (language.bytes_per_token_before, language.bytes_per_token_after)


def test_text_that_was_lost_before_is_no_failure() -> None:
    """What counts is that pruning changes nothing."""
    corpus = Corpus.from_texts({"en": ["abca", "bbbb", "caca"]})
    lossy = GivesBack(4, str.upper)
    assert 0 == effects(lossy, lossy, corpus, lossy.counts).failures
