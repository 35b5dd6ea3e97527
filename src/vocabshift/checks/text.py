"""Text by language: does it round-trip, how close is the tokenizer to its ceiling, and how much
do two segmentations differ?

The ceiling is the upper bound on bytes per token for any extension. No merge crosses a pre-token
boundary, so no number of new tokens exceeds bytes per pre-token. Weights of the corpus are ignored:
each document counts once. Segmentations by tokenizers with the same ids, whose boundaries or merges
differ, are compared token by token and place by place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.text.corpus import Corpus
from vocabshift.text.languages import UNLABELLED
from vocabshift.text.regexes import WORTHWHILE_LIFT
from vocabshift.tokenizer import metaspace_reader
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, Ids, Offsets
from vocabshift.tokenizer.corpus_reader import TokenizerReader
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.pipeline import repair_words
from vocabshift.tokenizer.token_bytes import is_byte_level, is_metaspace, token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer


def ceilings(tokenizer: Tokenizer, corpus: Corpus, *, threads: int = 1) -> dict[str, float] | None:
    """Bytes of raw text for each pre-token, by label of the corpus.

    Text goes through the tokenizer's normalizer, and an added token in it is a pre-token. If the
    tokenizer encodes whole documents ("▁" for the space), the groups of tokens that may ever merge
    take the place of pre-tokens. None for a tokenizer of another kind. A language whose text has
    no pre-token is left out.
    """
    if is_metaspace(tokenizer):
        found = metaspace_reader.ceilings(tokenizer, corpus, threads=threads)
        return {label or UNLABELLED: ceiling for label, ceiling in found.items()}
    if not is_byte_level(tokenizer):
        return None
    reader = TokenizerReader.of(tokenizer, corpus, by_language=True)
    words = reader.count_words(threads=threads)
    n_words: dict[str, int] = {}
    n_bytes: dict[str, int] = {}
    for i, group in enumerate(reader.groups):
        label = group.language or UNLABELLED
        n_bytes[label] = n_bytes.get(label, 0) + group.n_bytes
        count = words.occurrences(i) if i < words.group_count else 0
        n_words[label] = n_words.get(label, 0) + count + group.n_special
    return {label: n_bytes[label] / count for label, count in n_words.items() if count}


NEAR = 0.9
"""From this share of the ceiling on, new tokens alone have next to nothing to give: Llama-3 stands
at 0.94 in Hindi, and its published extension by 32,000 tokens brings 6 %."""

SHOWN = 20
"""Lines that do not come back which are kept."""


@dataclass(slots=True)
class LanguageCheck:
    """The text of one language."""

    language: str
    lines: int = 0
    n_bytes: int = 0
    tokens: int = 0
    round_trip_failures: int = 0  # lines that do not come back from their ids
    ceiling: float | None = None  # bytes per pre-token: the most that any extension can reach
    repaired_ceiling: float | None = (
        None  # the same with the repaired pre-tokenizer, if there is one
    )
    lost_lines: list[str] = field(default_factory=list)  # the first that do not come back

    @property
    def bytes_per_token(self) -> float:
        """Of all its text; 0 where there is none."""
        return self.n_bytes / self.tokens if self.tokens else 0.0

    @property
    def reached(self) -> float | None:
        """Share of the ceiling that is reached already, in [0, 1]."""
        return self.bytes_per_token / self.ceiling if self.ceiling else None

    @property
    def is_bound(self) -> bool:
        """Whether the pre-tokenizer limits an extension, so that repairing it would help."""
        if self.ceiling is None or self.repaired_ceiling is None:
            return False
        return self.repaired_ceiling > WORTHWHILE_LIFT * self.ceiling

    def to_dict(self) -> dict[str, Any]:
        """JSON values; a missing ceiling is null."""
        plain = {key: value for key, value in asdict(self).items() if key != "lost_lines"}
        for key in ("ceiling", "repaired_ceiling"):
            value = plain.pop(key)
            plain[f"{key}_bytes_per_token"] = None if value is None else round(value, 4)
        return plain | {"bytes_per_token": round(self.bytes_per_token, 4)}


def check_text(
    tokenizer: AnyTokenizer, corpus: Corpus, threads: int
) -> tuple[tuple[LanguageCheck, ...], NDArray[np.int64]]:
    """Encode and decode all of `corpus`: languages in its order, and (rows,) how often it has each
    token. Ceilings for BPE alone."""
    rows: dict[str, LanguageCheck] = {}
    counts = np.zeros(tokenizer.row_count, dtype=np.int64)
    for documents in corpus.batches():
        label = documents.language or UNLABELLED
        row = rows.setdefault(label, LanguageCheck(label))
        texts = list(documents.texts())
        ids, offsets = tokenizer.encode_batch(texts, threads=threads)
        decoded = tokenizer.decode_batch(ids, offsets)
        lost = [text for text, back in zip(texts, decoded, strict=True) if text != back]
        row.lines += len(texts)
        row.n_bytes += documents.n_bytes
        row.tokens += len(ids)
        counts += np.bincount(ids, minlength=len(counts))
        row.round_trip_failures += len(lost)
        row.lost_lines += lost[: SHOWN - len(row.lost_lines)]
    if tokenizer.kind == "BPE":
        _add_ceilings(rows, as_tokenizer(tokenizer), corpus, threads)
    return tuple(rows.values()), counts


def _add_ceilings(
    rows: dict[str, LanguageCheck], tokenizer: Tokenizer, corpus: Corpus, threads: int
) -> None:
    own = ceilings(tokenizer, corpus, threads=threads) or {}
    repaired = repair_words(tokenizer)
    lifted = {} if repaired is None else ceilings(repaired, corpus, threads=threads) or {}
    for label, row in rows.items():
        row.ceiling = own.get(label)
        row.repaired_ceiling = lifted.get(label)


SAMPLE_BYTES = 1 << 20
"""Of each language, from its beginning."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How much two segmentations of the same documents differ."""

    documents: int
    changed_documents: int
    tokens: int  # of the first segmentation
    changed_tokens: int  # of these, not in the second at the same place

    @property
    def shares(self) -> tuple[float, float]:
        """Changed documents and tokens, as shares of all."""
        return (
            self.changed_documents / max(self.documents, 1),
            self.changed_tokens / max(self.tokens, 1),
        )

    @classmethod
    def total(cls, drifts: Iterable[Drift]) -> Drift:
        """All of them as one."""
        rows = [(d.documents, d.changed_documents, d.tokens, d.changed_tokens) for d in drifts]
        return cls(*(sum(row[i] for row in rows) for i in range(4)))


def drift(
    before: tuple[Ids, Offsets], after: tuple[Ids, Offsets], lengths: NDArray[np.int64]
) -> Drift:
    """Compare two segmentations, given as flat ids and offsets (n_documents + 1,).

    `lengths`: bytes of each token, by id; the same for both.
    """
    ids, offsets = before
    kept = np.isin(_placed(ids, lengths), _placed(after[0], lengths), assume_unique=True)
    changed = np.flatnonzero(~kept)
    documents = np.unique(np.searchsorted(offsets, changed, side="right"))
    return Drift(len(offsets) - 1, len(documents), len(ids), len(changed))


def token_lengths(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Bytes of each token by id, those of special tokens as written in text."""
    lengths = np.zeros(tokenizer.row_count, dtype=np.int64)
    for token_id, data in token_bytes(tokenizer).items():
        lengths[token_id] = len(data)
    for token in tokenizer.added_tokens:
        lengths[token.id] = len(token.content.encode())
    return lengths


def sample(corpus: Corpus, n_bytes: int = SAMPLE_BYTES) -> dict[str, list[str]]:
    """The first documents of each language, by label; no source is read further than that."""
    texts: dict[str, list[str]] = {}
    left: dict[str, int] = {}
    for part in corpus.parts:
        label = part.language or UNLABELLED
        left.setdefault(label, n_bytes)
        texts.setdefault(label, [])
        if left[label] <= 0:
            continue
        for text in chain.from_iterable(batch.texts() for batch in part.read()):
            texts[label].append(text[: left[label]])
            left[label] -= len(texts[label][-1].encode())
            if left[label] <= 0:
                break
    return texts


def _placed(ids: Ids, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each token with the place where it begins, as one number."""
    sizes = lengths[ids]
    begins: NDArray[np.int64] = np.cumsum(sizes) - sizes
    return begins << 24 | ids  # ids are below 2 ** 24 (tokenizer.model.MAX_ID)
