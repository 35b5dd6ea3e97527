"""What a pruning costs, with tokenizers that only count and give text back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vocabshift.pruning.counts import count_tokens
from vocabshift.pruning.effects import effects
from vocabshift.text.corpus import Corpus

TEXTS = ["abca", "bbbb", "caca"]


class GivesBack:
    """A tokenizer that counts `n_tokens` in all texts, and changes text as `change` says."""

    row_count = 1
    kind = "BPE"
    name = "gives-back"

    def __init__(self, n_tokens: int, change: Callable[[str], str] = str) -> None:
        self.n_tokens = n_tokens
        self.change = change
        self.texts: list[str] = []

    def encode_documents(self, *_: Any, threads: int = 1) -> tuple[Any, Any]:
        return np.zeros(self.n_tokens, dtype=np.int32), np.array([0, self.n_tokens])

    def encode_batch(self, texts: list[str], *, threads: int = 1) -> tuple[Any, Any]:
        self.texts = texts
        return np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)

    def decode_batch(self, ids: Any, offsets: Any) -> list[str]:
        return [self.change(text) for text in self.texts]


def found_by(before: Any, after: Any) -> Any:
    corpus = Corpus.from_texts({"en": TEXTS})
    return effects(before, after, corpus, count_tokens(before, corpus))


def test_text_that_does_not_come_back_is_counted() -> None:
    """By this figure `prune` refuses to write a tokenizer that loses text."""
    found = found_by(GivesBack(4), GivesBack(6, lambda text: text.replace("c", "")))
    assert (3, 2) == (found.documents, found.failures)
    (language,) = found.languages
    assert (3.0, 2.0) == (language.bytes_per_token_before, language.bytes_per_token_after)


def test_text_that_was_lost_before_is_no_failure() -> None:
    """What counts is that pruning changes nothing."""
    lossy = GivesBack(4, str.upper)
    assert 0 == found_by(lossy, lossy).failures
