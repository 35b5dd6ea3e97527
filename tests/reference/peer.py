"""The trainers of `tokenizers` on the same text and pattern: the merges that ours must equal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def merges_of_parity_trainer(
    texts: Mapping[str, Sequence[str]],
    pattern: Iterable[Split],
    n_merges: int,
    parallel: Mapping[str, Sequence[str]] | None = None,
    **options: Any,
) -> list[tuple[str, str]]:
    """Merges of its ParityBpeTrainer, in order; without parallel text, by bytes per character."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = byte_level(pattern)
    trainer = trainers.ParityBpeTrainer(
        num_merges=n_merges,
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
        **options,
    )
    joined = ["".join(of_language) for of_language in texts.values()]
    trainer.train_from_iterator(
        tokenizer,
        train_iterators=[iter(of_language) for of_language in texts.values()],
        dev_iterators=parallel and [iter(parallel[language]) for language in texts],
        ratio=None if parallel else [len(text.encode()) / len(text) for text in joined],
    )
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]
