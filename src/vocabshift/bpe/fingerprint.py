"""A name for what a tokenizer does to text, by which its ids are known again.

Owns which parts count: all that decides the ids of a text. Templates, decoder, roles and the
tokenizer's own name do not.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import chain

from vocabshift.bpe import tokenizer_json
from vocabshift.bpe.added_tokens import vocab_with
from vocabshift.bpe.tokenizer import Tokenizer


def fingerprint(tokenizer: Tokenizer) -> str:
    """Sixteen hex digits; equal for tokenizers that give text the same ids in the same way."""
    # Whether added tokens stand in the vocabulary too is a matter of writing.
    vocab = vocab_with(dict(tokenizer.model.vocab), tokenizer.added_tokens)
    merges = chain.from_iterable(tokenizer.model.merges)
    digest = hashlib.sha256()
    for part in (
        tokenizer_json.to_json(_bare(tokenizer)),
        # Long lists, flat: nested ones take twice the time.
        json.dumps(list(vocab), ensure_ascii=False),
        json.dumps(list(vocab.values())),
        json.dumps(list(merges), ensure_ascii=False),
    ):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()[:16]


def _bare(tokenizer: Tokenizer) -> Tokenizer:
    """It without vocabulary and merges, and without what does not change the ids of a text."""
    model = replace(tokenizer.model, vocab={}, merges=(), _checked=True)
    return replace(tokenizer, model=model, post_processor=None, decoder=None)
