"""The result of a pruning: the tokenizer, the id map, and the effects on text.

Owns the figures of the report, which `--json` prints (bytes per token by language, tokens by
script, text that round-trips), and the warnings.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from vocabshift.pruning.counts import Progress, Source, TokenCounts, count_tokens, documents_of
from vocabshift.pruning.stopping import PruningStep
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.missing_bytes import LostCharacters
from vocabshift.tokenizer.splits import Int64s
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

ROUND_TRIP_DOCUMENTS = 500
"""Documents of each language that are encoded and decoded…"""

ROUND_TRIP_CHARACTERS = 1 << 20
"""…as far as so many characters of it go."""


@dataclass(frozen=True, slots=True)
class LanguageEffect:
    """The text of one label of the corpus, before and after."""

    language: str | None
    n_bytes: int
    bytes_per_token_before: float
    bytes_per_token_after: float


@dataclass(frozen=True, slots=True)
class ScriptEffect:
    """The tokens of one script or class (`vocabulary_report`)."""

    name: str
    tokens: int  # before
    removed: int


@dataclass(frozen=True, slots=True)
class Effects:
    """Measured on the corpus; empty without one."""

    languages: tuple[LanguageEffect, ...] = ()
    documents: int = 0
    failures: int = 0


def effects(
    before: AnyTokenizer,
    after: AnyTokenizer,
    source: Source | None,
    counts: TokenCounts | None,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Effects:
    """Encode the source with both; `counts`: those of `before`, as it encodes by itself."""
    if source is None or counts is None:
        return Effects()
    again = count_tokens(after, source, threads=threads, phase="check", progress=progress)
    then = again.bytes_and_tokens()
    languages = tuple(
        LanguageEffect(
            label, n_bytes, n_bytes / max(n_tokens, 1), then[label][0] / max(then[label][1], 1)
        )
        for label, (n_bytes, n_tokens) in counts.bytes_and_tokens().items()
    )
    documents = failures = 0
    for label in counts.languages:
        texts = _sample(source, label)
        expected, got = (
            tokenizer.decode_batch(*tokenizer.encode_batch(texts, threads=threads))
            for tokenizer in (before, after)
        )
        documents += len(texts)
        failures += sum(a != b for a, b in zip(expected, got, strict=True))
    return Effects(languages, documents, failures)


def script_effects(names: list[str], classes: Int64s, removed: Int64s) -> tuple[ScriptEffect, ...]:
    """Tokens by script or class, those that lost most first."""
    tokens = np.bincount(classes[classes >= 0], minlength=len(names))
    gone = classes[removed]
    lost = np.bincount(gone[gone >= 0], minlength=len(names))
    rows = [
        ScriptEffect(name, int(tokens[i]), int(lost[i]))
        for i, name in enumerate(names)
        if tokens[i]
    ]
    return tuple(sorted(rows, key=lambda row: (-row.removed, -row.tokens, row.name)))


def _sample(source: Source, language: str | None) -> list[str]:
    """The first documents of a language."""
    texts = []
    left = ROUND_TRIP_CHARACTERS
    for text in islice(documents_of(source, language), ROUND_TRIP_DOCUMENTS):
        texts.append(text[:left])
        left -= len(text)
        if left <= 0:  # a document may be a whole file
            break
    return texts


@dataclass(frozen=True)
class PruneReport:
    """What a pruning did; counts are of tokens."""

    kind: str  # "BPE", "Unigram" or "WordPiece"
    order: str
    n_removed: int
    n_decided_by_ties: int  # removed only because of a tie-break
    n_removable: int  # could have been removed in all
    n_atomic: int  # bytes, characters and byte tokens: made of no others
    vocab_size: int  # tokens of the model, special tokens outside it not counted
    rows: int  # the highest id plus one
    unreachable_before: int  # STT
    unreachable_after: int
    removed_by_script: tuple[ScriptEffect, ...]
    languages: tuple[LanguageEffect, ...]  # where there is a corpus, and it was asked for
    round_trip_documents: int  # of the corpus, encoded and decoded by both
    round_trip_failures: int  # of these, not given back as the old tokenizer gives them
    corpus_fingerprint: str | None
    warnings: tuple[str, ...]
    lost_characters: LostCharacters
    steps: tuple[PruningStep, ...] = ()  # what `until` tried, by tokens removed


@dataclass(frozen=True, eq=False)
class Pruning:
    """A pruned tokenizer, and the report of the pruning."""

    tokenizer: Tokenizer | UnigramOrWordPieceTokenizer
    id_map: TokenIdMap
    removed: Int64s  # (n_removed,) old ids in the order of removal
    report: PruneReport


def loss_warnings(lost: LostCharacters) -> tuple[str, ...]:
    """A warning if the pruned tokenizer loses characters, as the one before it did."""
    if not lost.after:
        return ()
    more = ", …" if lost.after > len(lost.names) else ""
    return (
        f"it lacks bytes and loses {lost.after:,} assigned characters ({', '.join(lost.names)}"
        f"{more}), as it did before; --complete-bytes adds tokens for them",
    )


def tie_warnings(n_removed: int, n_ties: int) -> tuple[str, ...]:
    """A warning if most removals were decided by a tie."""
    if n_ties * 2 <= n_removed:
        return ()
    return (
        f"{n_ties:,} of {n_removed:,} removals were decided by a tie alone: the text is too small "
        "to tell these tokens from others that stay; give more text, or keep what matters",
    )
