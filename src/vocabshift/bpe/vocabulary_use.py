"""How much of a vocabulary the text of each language uses.

Owns the counting over a corpus; which script a token belongs to is `vocabulary_report`'s. Corpus
weights play no part: each document counts once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.bpe.drift import UNLABELLED
from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.token_bytes import token_bytes
from vocabshift.text.corpus import Corpus


@dataclass(frozen=True, slots=True)
class LanguageUse:
    """What the text of one language uses; special tokens that stand in the text are counted."""

    language: str | None  # label of the corpus
    n_bytes: int  # of UTF-8
    tokens: int
    distinct_tokens: int
    own_tokens: int  # of these, tokens that no other language uses
    superword_share: float  # of the tokens of the text, those with text on both sides of a space


@dataclass(frozen=True, slots=True)
class VocabularyUse:
    """Use by language, in the order of the corpus."""

    vocab_size: int
    unused: int  # tokens of the model that do not occur in the text at all
    languages: tuple[LanguageUse, ...]

    @property
    def language_bytes(self) -> dict[str | None, int]:
        """Bytes of text by label, as `vocabulary_report` takes them."""
        return {row.language: row.n_bytes for row in self.languages}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "languages": [asdict(row) for row in self.languages]}


def vocabulary_use(tokenizer: Any, corpus: Corpus, *, threads: int = 1) -> VocabularyUse:
    """Encode all of `corpus` with a tokenizer (or what `check` takes) and count; one pass.

    The result does not depend on `threads`.
    """
    encoder = Encoder(tokenizer)
    value = encoder.tokenizer
    counts: dict[str | None, NDArray[np.int64]] = {}
    n_bytes: dict[str | None, int] = {}
    for documents in corpus.batches():
        label = documents.language
        ids, _ = encoder.encode_batch(list(documents.texts()), threads=threads)
        found = np.bincount(ids, minlength=value.row_count)
        counts[label] = counts[label] + found if label in counts else found
        n_bytes[label] = n_bytes.get(label, 0) + documents.n_bytes

    is_superword = np.zeros(value.row_count, dtype=bool)
    for token_id, data in token_bytes(value).items():
        is_superword[token_id] = b" " in data.strip()
    users = np.sum([of_language > 0 for of_language in counts.values()], axis=0)
    rows = [
        LanguageUse(
            label,
            n_bytes[label],
            int(of_language.sum()),
            int(np.count_nonzero(of_language)),
            int(np.count_nonzero((of_language > 0) & (users == 1))),
            float(of_language[is_superword].sum() / max(int(of_language.sum()), 1)),
        )
        for label, of_language in counts.items()
    ]
    ids_of_model = np.fromiter(value.model.vocab.values(), np.int64, value.vocab_size)
    return VocabularyUse(
        value.vocab_size, int(np.count_nonzero(users[ids_of_model] == 0)), tuple(rows)
    )


def bytes_per_token(tokenizer: Any, corpus: Corpus, *, threads: int = 1) -> dict[str, float]:
    """Bytes of raw text for each token, by label of the corpus; one pass."""
    encoder = Encoder(tokenizer)
    n_bytes: dict[str, int] = {}
    n_tokens: dict[str, int] = {}
    for documents in corpus.batches():
        ids, _ = encoder.encode_documents(
            documents.data, documents.starts, documents.ends, threads=threads
        )
        label = documents.language or UNLABELLED
        n_bytes[label] = n_bytes.get(label, 0) + documents.n_bytes
        n_tokens[label] = n_tokens.get(label, 0) + len(ids)
    return {label: round(n / max(n_tokens[label], 1), 4) for label, n in n_bytes.items()}
