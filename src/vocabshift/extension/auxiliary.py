"""The auxiliary tokenizer of the baselines: trained from nothing, under the base's own pipeline.

What transformers' `train_new_from_iterator` gives: byte-level BPE behind the base's normalizer and
pre-tokenizer, of a size that counts its special tokens and the 256 bytes in. Owns that training;
what a baseline takes from it is `naive`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vocabshift import _core
from vocabshift.bpe import byte_level
from vocabshift.bpe.compiled_model import compile_merges
from vocabshift.bpe.model import Merge
from vocabshift.bpe.token_bytes import is_byte_level
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.extension.counted_text import CountedText, Progress

SIZE = 64_000
"""Tokens of the auxiliary tokenizer in the paper's toolkit."""


@dataclass(frozen=True)
class Auxiliary:
    """Tokens and merges of a tokenizer trained from nothing, spelt as the base spells its own."""

    tokens: tuple[str, ...]  # by id, special tokens left out
    merges: tuple[Merge, ...]  # by rank

    def new_tokens(self, base: Tokenizer) -> list[str]:
        """Its tokens that the base lacks, in the order of their ids."""
        known = base.model.vocab.keys() | {token.content for token in base.added_tokens}
        return [token for token in self.tokens if token not in known]


def train_auxiliary(
    base: Tokenizer,
    text: CountedText,
    *,
    vocab_size: int = SIZE,
    threads: int = 1,
    progress: Progress | None = None,
) -> Auxiliary:
    """Train the auxiliary tokenizer of a byte-level base; fewer tokens where pairs run out.

    `text` holds the words of the base's own pipeline, and keeps them. `vocab_size` counts the
    base's special tokens and the 256 bytes. ValueError for a base that is not byte-level.
    """
    if not is_byte_level(base) or not base.model.is_byte_level:
        raise ValueError(
            f"{base.name} is not byte-level; for a SentencePiece tokenizer use "
            "train_sentencepiece_auxiliary, for others there are no baselines"
        )
    single = [byte_level.to_bytes(image) for image in byte_level.ALPHABET]
    n_special = sum(token.special for token in base.added_tokens)
    trained = _core.continue_bpe(
        text.words,
        _core.WordWeights(text.weighed.fixed_point_weights()),
        max(vocab_size - n_special, len(single)),
        compile_merges(single, np.zeros((0, 3), np.uint32)),
        single,
        [],
        min_frequency=text.weighed.min_count(1),
        duplicates=_core.Duplicates.REUSE_ID,  # as the trainer of `tokenizers` does
        keep_words=True,
        threads=threads,
        progress=progress,
    )
    images = byte_level.all_to_images(trained.tokens)
    merges = [(images[left], images[right]) for left, right, _ in trained.merges.tolist()]
    return Auxiliary(tuple(images), tuple(merges))
