"""A name for what a tokenizer does to text, by which its ids are known again.

Owns which parts count: all that decides the ids of a text. Templates, decoder, roles and the
tokenizer's own name do not.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from vocabshift.bpe import tokenizer_json
from vocabshift.bpe.tokenizer import Tokenizer


def fingerprint(tokenizer: Tokenizer) -> str:
    """Sixteen hex digits; equal for tokenizers that are written alike."""
    text = tokenizer_json.to_json(replace(tokenizer, post_processor=None, decoder=None))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
