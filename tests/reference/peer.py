"""The trainer of `tokenizers` on the same text and pattern: the merges that ours must equal."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tokenizers import Tokenizer, models, trainers
from tokenizers.pre_tokenizers import ByteLevel

from reference.pre_tokenize import byte_level
from vocabshift.text.patterns import Split


def merges_of_tokenizers(
    documents: Iterable[str],
    pattern: Iterable[Split],
    vocab_size: int,
    *,
    min_frequency: int = 1,
) -> list[tuple[str, str]]:
    """Merges in order, in the byte-level image."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = byte_level(pattern)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]
