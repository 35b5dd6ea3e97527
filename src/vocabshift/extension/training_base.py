"""A tokenizer in the form that continued training needs: dense ids, bytes, and the core's encoder.

Owns the way between a vocabulary whose ids may have holes and the places of training. Knows
nothing of text or of what is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.bpe.compiled_model import compile_model, images_bytes
from vocabshift.bpe.model import Merge
from vocabshift.bpe.token_bytes import is_byte_level
from vocabshift.bpe.tokenizer import Tokenizer


class TrainingBase:
    """What training goes on from. A place is the index of a token in the order of the ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.byte_level = is_byte_level(tokenizer)
        by_id = sorted(tokenizer.model.vocab.items(), key=lambda entry: entry[1])
        self.names = [token for token, _ in by_id]  # as the vocabulary spells them, by place
        self.places = {token: place for place, token in enumerate(self.names)}

    @cached_property
    def tokens(self) -> list[bytes]:
        """Bytes by place, as the core compares them: of a token, or of its text."""
        if self.byte_level:
            return images_bytes(self.names)
        return [token.encode() for token in self.names]

    @cached_property
    def encoder(self) -> _core.Encoder:
        """The model as it is, merge skipping included; ids are places."""
        model = self.tokenizer.model
        if model.size != len(self.names):
            model = replace(model, vocab=self.places, _checked=True)
        return compile_model(model, byte_level=self.byte_level)

    @cached_property
    def held(self) -> list[int]:
        """Places of the tokens that merges hold as a part."""
        parts = set(chain.from_iterable(self.tokenizer.model.merges))
        return [self.places[token] for token in parts]

    def forbidden(self) -> set[bytes]:
        """What no merge may make: an added token must not come out of ordinary text."""
        return {token.content.encode() for token in self.tokenizer.added_tokens}

    def spell(self, token: bytes) -> str:
        """A token of training as the vocabulary spells it."""
        from vocabshift.bpe import byte_level

        return byte_level.to_image(token) if self.byte_level else token.decode()

    def rows(self, tokens: Sequence[str], merges: Sequence[Merge]) -> NDArray[np.uint32]:
        """Merges as (n, 3) ids of training; `tokens` are new ones, behind all places."""
        ids = dict(self.places)
        ids.update((token, len(self.names) + i) for i, token in enumerate(tokens))
        rows = [(ids[left], ids[right], ids[left + right]) for left, right in merges]
        return np.array(rows, dtype=np.uint32).reshape(-1, 3)
