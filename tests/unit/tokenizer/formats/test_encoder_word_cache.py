"""The encoder's memory of words grows, is filled and begins anew, and no id changes for it."""

from __future__ import annotations

import numpy as np
import pytest

from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer

WORDS = 600_000  # more than the cache of a small vocabulary ever holds (3/4 of 2 ** 19)
BATCH = 100_000


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    rng = np.random.default_rng(0)
    sample = " ".join("".join(rng.choice(list("abcdefgh"), 5)) for _ in range(3000))
    return BpeTrainer(vocab_size=400).train(Corpus.from_texts({"en": [sample]}))


def words_of(batch: int) -> list[str]:
    """Words that differ: short ones, long ones, and ones of many tokens."""
    letters = str.maketrans("0123456789", "abcdefghzy")
    rng = np.random.default_rng(batch)
    lengths = rng.integers(1, 6, BATCH)
    spelt = (f"{batch * BATCH + i:07d}".translate(letters) for i in range(BATCH))
    return [" " + word * int(length) for word, length in zip(spelt, lengths, strict=True)]


def test_ids_do_not_depend_on_what_was_seen_before(tokenizer: Tokenizer) -> None:
    old = Encoder(tokenizer)
    for batch in range(WORDS // BATCH):
        words = words_of(batch)
        text = ["".join(words), *words[:100]]
        ids, offsets = old.encode_batch(text)
        fresh_ids, fresh_offsets = Encoder(tokenizer).encode_batch(text)
        np.testing.assert_array_equal(ids, fresh_ids)
        np.testing.assert_array_equal(offsets, fresh_offsets)
    # The first words once more, from memory or not, beside the library.
    first = words_of(0)
    expected = tokenizer.backend.encode("".join(first), add_special_tokens=False).ids
    assert old.encode("".join(first)).tolist() == expected
